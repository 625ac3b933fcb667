"""Eight boxes against eight boxes in one go.

A block holds eight boxes side by side, (6, 8) float32: row d is bound d of all eight, as in `boxes`. LLVM's vector
types map a row to one register; the 64 overlap tests of two blocks take about 12 ns, while the loop that numba
compiles from plain Python takes 220 ns: it does not find the vectors by itself. LLVM splits the vectors where a
processor has narrower ones, so nothing here depends on the machine (bits are numbered as on little-endian ones).

Bit 8 * i + j of a mask speaks of box i of block a and box j of block b. The functions here become part of every
`@kernel` that calls them.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

LANES = 8
BOUNDS = 6
CORNERS = 3

_BIT = ir.IntType(1)
_BYTE = ir.IntType(LANES)
_INT = ir.IntType(32)
_LONG = ir.IntType(64)
_FLOAT = ir.FloatType()


def _spread(builder: Any, scalar: Any, element: Any) -> Any:
    """The scalar in all eight lanes."""
    undefined = ir.Constant(ir.VectorType(element, LANES), ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(_INT, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_INT, LANES), [0] * LANES))


class _Block:
    """Row and element access to block `index` of a C-contiguous (n, rows, 8) array."""

    def __init__(self, context: Any, builder: Any, array_type: Any, array: Any, index: Any, rows: int) -> None:
        self.builder = builder
        data = context.make_array(array_type)(context, builder, array).data
        self.start = builder.gep(data, [builder.mul(index, ir.Constant(_LONG, rows * LANES))])
        self.element = _FLOAT if array_type.dtype == types.float32 else _INT

    def row(self, row: int) -> Any:
        pointer = self.builder.gep(self.start, [ir.Constant(_LONG, row * LANES)])
        vector = self.builder.load(self.builder.bitcast(pointer, ir.VectorType(self.element, LANES).as_pointer()))
        vector.align = 4
        return vector

    def spread(self, row: int, lane: int) -> Any:
        scalar = self.builder.load(self.builder.gep(self.start, [ir.Constant(_LONG, row * LANES + lane)]))
        return _spread(self.builder, scalar, self.element)


def _pack(builder: Any, lane_masks: list[Any]) -> Any:
    """Eight vectors of eight bits as one 64-bit mask."""
    mask = ir.Constant(_LONG, 0)
    for lane, bits in enumerate(lane_masks):
        byte = builder.zext(builder.bitcast(bits, _BYTE), _LONG)
        mask = builder.or_(mask, builder.shl(byte, ir.Constant(_LONG, LANES * lane)))
    return mask


class _Sides:
    """On which of the six sides boxes of two blocks are not apart."""

    def __init__(self, block_a: _Block, block_b: _Block) -> None:
        self.builder, self.block_a = block_a.builder, block_a
        self.opposite = [self.builder.fneg(block_b.row((d + 3) % BOUNDS)) for d in range(BOUNDS)]

    def tests(self, lane: int) -> list[Any]:
        """For each side, eight bits: box `lane` of block a against all of block b."""
        compare = self.builder.fcmp_ordered
        return [compare("<=", self.block_a.spread(d, lane), self.opposite[d]) for d in range(BOUNDS)]


def _overlap_mask(typing_context: Any, blocks_a: Any, a: Any, blocks_b: Any, b: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block_a = _Block(context, builder, signature.args[0], args[0], args[1], BOUNDS)
        block_b = _Block(context, builder, signature.args[2], args[2], args[3], BOUNDS)
        sides = _Sides(block_a, block_b)
        return _pack(builder, [reduce(builder.and_, sides.tests(lane)) for lane in range(LANES)])

    return types.uint64(blocks_a, types.int64, blocks_b, types.int64), codegen


def _meeting_mask(typing_context: Any, starts_a: Any, ends_a: Any, a: Any, starts_b: Any, ends_b: Any, b: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        blocks = [
            _Block(context, builder, signature.args[k], args[k], args[3 * (k // 3) + 2], BOUNDS) for k in (0, 1, 3, 4)
        ]
        start, end = _Sides(blocks[0], blocks[2]), _Sides(blocks[1], blocks[3])
        lane_masks = []
        for lane in range(LANES):
            either = [builder.or_(*tests) for tests in zip(start.tests(lane), end.tests(lane), strict=True)]
            lane_masks.append(reduce(builder.and_, either))
        return _pack(builder, lane_masks)

    return types.uint64(starts_a, ends_a, types.int64, starts_b, ends_b, types.int64), codegen


def _shared_vertex_mask(typing_context: Any, corners_a: Any, a: Any, corners_b: Any, b: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block_a = _Block(context, builder, signature.args[0], args[0], args[1], CORNERS)
        block_b = _Block(context, builder, signature.args[2], args[2], args[3], CORNERS)
        rows_b = [block_b.row(k) for k in range(CORNERS)]
        lane_masks = []
        for lane in range(LANES):
            bits = ir.Constant(ir.VectorType(_BIT, LANES), [0] * LANES)
            for k in range(CORNERS - 1):
                vertex = block_a.spread(k, lane)
                for row in rows_b:
                    bits = builder.or_(bits, builder.icmp_signed("==", vertex, row))
            lane_masks.append(bits)
        return _pack(builder, lane_masks)

    return types.uint64(corners_a, types.int64, corners_b, types.int64), codegen


def _lowest_bit(typing_context: Any, mask: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(_BIT, 1))

    return types.int64(types.uint64), codegen


def _count_bits(typing_context: Any, mask: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


overlap_mask: Any = intrinsic(_overlap_mask)
"""overlap_mask(blocks_a, a, blocks_b, b): which of the 8 x 8 boxes of two blocks touch; blocks (n, 6, 8) float32."""

meeting_mask: Any = intrinsic(_meeting_mask)
"""meeting_mask(starts_a, ends_a, a, starts_b, ends_b, b): which of 8 x 8 boxes may touch on their way.

Those that are apart on one side at the start are left out if they are apart on the same side at the end. What is in the
boxes moves evenly: its lowest place is a concave function of time, its highest a convex one, so if the one is above the
other at both ends, it is so in between.
"""

shared_vertex_mask: Any = intrinsic(_shared_vertex_mask)
"""shared_vertex_mask(corners_a, a, corners_b, b): which of the 8 x 8 primitives share a vertex.

Corners are (n, 3, 8) int32, a vertex or an edge repeats its last one. Only the first two corners of side a are
looked at: a must be vertices or edges.
"""

lowest_bit: Any = intrinsic(_lowest_bit)
"""lowest_bit(mask): the position of the lowest set bit of a mask that is not 0."""

count_bits: Any = intrinsic(_count_bits)
"""count_bits(mask): the number of set bits."""
