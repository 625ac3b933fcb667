"""Products of small blocks with vectors in registers: 3 x 3 blocks of vertices and 6 x 6 blocks of patches.

LLVM's vector types map a column to a register; numba does not find them by itself, and takes two to three times as
long. Every column has a sum of its own: one sum for all would wait for itself. The functions here become part of every
`@kernel` that calls them; they take arrays of float32 or of float64.

- A vector of three is stored as four numbers, the last of them 0. A 3 x 3 block, most of what an iteration reads, is
  stored as three columns without the last of each, nine numbers: a column is read with one number too many, which goes
  into the last of the four and out again.
- A vector of six is stored as eight numbers, the last two of them 0, and a 6 x 6 block as six such columns, (6, 8).
  Those that an iteration reads are stored without the last two of each, 36 numbers, and read likewise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

WIDTH = 4
BLOCK = 9
ROW = 6
MODES = 6
MODES_WIDTH = 8
_INT = ir.IntType(32)
_LONG = ir.IntType(64)
_WIDE = ir.VectorType(ir.DoubleType(), WIDTH)
MODES_BLOCK = MODES * MODES
_MODES_VECTOR = ir.VectorType(ir.DoubleType(), MODES_WIDTH)


def _data(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    return context.make_array(array_type)(context, builder, array).data


def _element(array_type: Any) -> Any:
    return ir.FloatType() if array_type.dtype == types.float32 else ir.DoubleType()


def _at(builder: Any, pointer: Any, index: Any, size: int = 1) -> Any:
    """Where item `index` starts, each of `size` numbers."""
    index = ir.Constant(_LONG, index) if isinstance(index, int) else index
    return builder.gep(pointer, [builder.mul(index, ir.Constant(_LONG, size))])


def _load(builder: Any, pointer: Any, vector: Any) -> Any:
    loaded = builder.load(builder.bitcast(pointer, vector.as_pointer()))
    loaded.align = 4
    return loaded


def _store(builder: Any, value: Any, pointer: Any) -> None:
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer())).align = 4


def _zeros(vector: Any) -> Any:
    return ir.Constant(vector, [0.0] * vector.count)


def _shuffle(builder: Any, a: Any, b: Any, lanes: list[int]) -> Any:
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_INT, len(lanes)), lanes))


def _spread(builder: Any, vector: Any, scalar: Any) -> Any:
    """A register with `scalar` in every lane."""
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(_INT, 0))
    return _shuffle(builder, first, undefined, [0] * vector.count)


def _add_product(builder: Any, a: Any, b: Any, total: Any) -> Any:
    return builder.fadd(builder.fmul(a, b, flags=("contract",)), total, flags=("contract",))


def _subtract_product(builder: Any, a: Any, b: Any, total: Any) -> Any:
    return builder.fsub(total, builder.fmul(a, b, flags=("contract",)), flags=("contract",))


def _sum(builder: Any, totals: list[Any]) -> Any:
    while len(totals) > 1:
        totals = [builder.fadd(a, b) for a, b in zip(totals[::2], totals[1::2], strict=False)] + (
            totals[-1:] if len(totals) % 2 else []
        )
    return totals[0]


def _fold(
    builder: Any, first: Any, last: Any, starts: list[Any], add: Callable[[Any, list[Any]], list[Any]]
) -> list[Any]:
    """The loop totals = add(k, totals) for k from `first` to `last`, from `starts` on; the last totals."""
    before = builder.block
    loop, done = (builder.function.append_basic_block(name) for name in ("loop", "done"))
    builder.cbranch(builder.icmp_signed("<", first, last), loop, done)
    builder.position_at_end(loop)
    k, totals = builder.phi(_LONG), [builder.phi(start.type) for start in starts]
    k.add_incoming(first, before)
    sums = add(k, totals)
    following = builder.add(k, ir.Constant(_LONG, 1))
    k.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", following, last), loop, done)
    builder.position_at_end(done)
    results = [builder.phi(start.type) for start in starts]
    for total, result, start, summed in zip(totals, results, starts, sums, strict=True):
        total.add_incoming(start, before)
        total.add_incoming(summed, loop)
        result.add_incoming(start, before)
        result.add_incoming(summed, loop)
    return results


def _without_last(builder: Any, value: Any) -> Any:
    """A vector of three with 0 as the last of its four numbers."""
    return _shuffle(builder, value, _zeros(value.type), [0, 1, 2, 7])


def _rows_of_block(builder: Any, columns: list[Any]) -> list[Any]:
    """The rows of a block, of its columns; the last numbers of the columns do not matter."""
    a, b, c = columns
    low, high, none = [0, 4, 1, 5], [2, 6, 3, 7], _zeros(a.type)
    low_two, low_one = _shuffle(builder, a, b, low), _shuffle(builder, c, none, low)
    high_two, high_one = _shuffle(builder, a, b, high), _shuffle(builder, c, none, high)
    return [
        _shuffle(builder, low_two, low_one, [0, 1, 4, 5]),
        _shuffle(builder, low_two, low_one, [2, 3, 6, 7]),
        _shuffle(builder, high_two, high_one, [0, 1, 4, 5]),
    ]


def _multiply_row(
    typing_context: Any,
    rows: Any,
    blocks: Any,
    columns: Any,
    factors: Any,
    factor_columns: Any,
    own: Any,
    x: Any,
    i: Any,
    y: Any,
) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(_element(signature.args[1]), WIDTH)
        row_data, block_data, column_data, factor_data, factor_column_data, own_data, x_data, y_data = (
            _data(context, builder, signature.args[k], args[k]) for k in (0, 1, 2, 3, 4, 5, 6, 8)
        )
        row = _at(builder, row_data, args[7], ROW)
        first, middle, last, first_factor, middle_factor, last_factor = (
            builder.zext(builder.load(_at(builder, row, k)), _LONG) for k in range(ROW)
        )

        def spreads(values: Any) -> list[Any]:
            return [_shuffle(builder, values, values, [lane] * WIDTH) for lane in range(3)]

        def place_of(k: Any, of: Any, data: Any) -> Any:
            return _at(builder, data, builder.zext(builder.load(_at(builder, of, k)), _LONG), WIDTH)

        here = _load(builder, _at(builder, x_data, args[7], WIDTH), vector)

        def columns_of(data: Any, k: Any) -> list[Any]:
            block = _at(builder, data, k, BLOCK)
            return [_load(builder, _at(builder, block, column, 3), vector) for column in range(3)]

        def add_block(both: bool, k: Any, totals: list[Any]) -> list[Any]:
            apart = builder.fsub(_load(builder, place_of(k, column_data, x_data), vector), here)
            ways, values = spreads(apart), columns_of(block_data, k)
            if both:
                place = place_of(k, column_data, y_data)
                there = _load(builder, place, vector)
                for value, way in zip(_rows_of_block(builder, values), ways, strict=True):
                    there = _subtract_product(builder, value, way, there)
                _store(builder, there, place)
            return [_add_product(builder, *parts) for parts in zip(values, ways, totals, strict=True)]

        def add_factor(both: bool, k: Any, totals: list[Any]) -> list[Any]:
            factor = _spread(builder, vector, builder.load(_at(builder, factor_data, k)))
            apart = builder.fsub(_load(builder, place_of(k, factor_column_data, x_data), vector), here)
            if both:
                place = place_of(k, factor_column_data, y_data)
                _store(builder, _subtract_product(builder, factor, apart, _load(builder, place, vector)), place)
            return [_add_product(builder, factor, apart, totals[0])]

        place = _at(builder, y_data, args[7], WIDTH)
        totals = [
            builder.fmul(value, spread)
            for value, spread in zip(columns_of(own_data, args[7]), spreads(here), strict=True)
        ]
        totals = _fold(builder, first, middle, totals, partial(add_block, True))
        totals = _fold(builder, middle, last, totals, partial(add_block, False))
        others = _fold(builder, first_factor, middle_factor, [_load(builder, place, vector)], partial(add_factor, True))
        others = _fold(builder, middle_factor, last_factor, others, partial(add_factor, False))
        total = _sum(builder, [*totals, *others])
        _store(builder, _without_last(builder, total), place)
        return context.get_dummy_value()

    return types.void(rows, blocks, columns, factors, factor_columns, own, x, types.int64, y), codegen


def _multiply_block(typing_context: Any, blocks: Any, x: Any, i: Any, y: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(_element(signature.args[0]), WIDTH)
        block_data, x_data, y_data = (_data(context, builder, signature.args[k], args[k]) for k in (0, 1, 3))
        row, block = _at(builder, x_data, args[2], WIDTH), _at(builder, block_data, args[2], BLOCK)
        totals = []
        for column in range(3):
            spread = _spread(builder, vector, builder.load(_at(builder, row, column)))
            totals.append(builder.fmul(_load(builder, _at(builder, block, column, 3), vector), spread))
        _store(builder, _without_last(builder, _sum(builder, totals)), _at(builder, y_data, args[2], WIDTH))
        return context.get_dummy_value()

    return types.void(blocks, x, types.int64, y), codegen


def _add_multiple(typing_context: Any, factor: Any, x: Any, i: Any, y: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        element = _element(signature.args[1])
        vector = ir.VectorType(element, WIDTH)
        x_data, y_data = (_data(context, builder, signature.args[k], args[k]) for k in (1, 3))
        spread = _spread(builder, vector, _to(builder, args[0], element))
        place = _at(builder, y_data, args[2], WIDTH)
        values = _load(builder, _at(builder, x_data, args[2], WIDTH), vector)
        _store(builder, _add_product(builder, values, spread, _load(builder, place, vector)), place)
        return context.get_dummy_value()

    return types.void(types.float64, x, types.int64, y), codegen


def _dot_rows(typing_context: Any, x: Any, y: Any, first: Any, last: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(_element(signature.args[0]), WIDTH)
        x_data, y_data = (_data(context, builder, signature.args[k], args[k]) for k in (0, 1))

        def add(k: Any, totals: list[Any]) -> list[Any]:
            a, b = (_load(builder, _at(builder, data, k, WIDTH), vector) for data in (x_data, y_data))
            return [builder.fadd(totals[0], _widened(builder, builder.fmul(a, b)))]

        total = _fold(builder, args[2], args[3], [_zeros(_WIDE)], add)[0]
        return _sum(builder, [builder.extract_element(total, ir.Constant(_INT, lane)) for lane in range(3)])

    return types.float64(x, y, types.int64, types.int64), codegen


def _to(builder: Any, scalar: Any, element: Any) -> Any:
    return scalar if element == ir.DoubleType() else builder.fptrunc(scalar, element)


def _widened(builder: Any, value: Any) -> Any:
    wide = ir.VectorType(ir.DoubleType(), value.type.count)
    return value if value.type == wide else builder.fpext(value, wide)


def _cross(builder: Any, a: Any, b: Any) -> Any:
    """The vector product; its last lane is 0."""
    ahead, behind = [1, 2, 0, 3], [2, 0, 1, 3]
    first = builder.fmul(_shuffle(builder, a, a, ahead), _shuffle(builder, b, b, behind))
    return builder.fsub(first, builder.fmul(_shuffle(builder, a, a, behind), _shuffle(builder, b, b, ahead)))


def _gather_rows(typing_context: Any, r: Any, arms: Any, first: Any, last: Any, out: Any, a: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(_element(signature.args[0]), WIDTH)
        r_data, arm_data, out_data = (_data(context, builder, signature.args[k], args[k]) for k in (0, 1, 4))

        def add(k: Any, totals: list[Any]) -> list[Any]:
            force, arm = (_load(builder, _at(builder, data, k, WIDTH), vector) for data in (r_data, arm_data))
            return [builder.fadd(totals[0], force), builder.fadd(totals[1], _cross(builder, arm, force))]

        totals = _fold(builder, args[2], args[3], [_zeros(vector)] * 2, add)
        for half, total in enumerate(totals):
            for lane in range(3):
                value = builder.extract_element(total, ir.Constant(_INT, lane))
                value = value if value.type == ir.DoubleType() else builder.fpext(value, ir.DoubleType())
                builder.store(value, _at(builder, _at(builder, out_data, args[5], MODES_WIDTH), 3 * half + lane))
        return context.get_dummy_value()

    return types.void(r, arms, types.int64, types.int64, out, types.int64), codegen


def _turn_row(typing_context: Any, ways: Any, arms: Any, i: Any, z: Any, factor: Any, p: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        element = _element(signature.args[1])
        vector = ir.VectorType(element, WIDTH)
        arm_data, z_data, p_data = (_data(context, builder, signature.args[k], args[k]) for k in (1, 3, 5))
        ways = [builder.extract_value(args[0], k) for k in range(MODES)]
        shift, turn = (_zeros(vector), _zeros(vector))
        for lane in range(3):
            at = ir.Constant(_INT, lane)
            shift = builder.insert_element(shift, _to(builder, ways[lane], element), at)
            turn = builder.insert_element(turn, _to(builder, ways[3 + lane], element), at)
        arm = _load(builder, _at(builder, arm_data, args[2], WIDTH), vector)
        moved = builder.fadd(_load(builder, _at(builder, z_data, args[2], WIDTH), vector), shift)
        moved = builder.fadd(moved, _cross(builder, turn, arm))
        place = _at(builder, p_data, args[2], WIDTH)
        spread = _spread(builder, vector, _to(builder, args[4], element))
        _store(builder, _add_product(builder, _load(builder, place, vector), spread, moved), place)
        return context.get_dummy_value()

    return types.void(ways, arms, types.int64, z, types.float64, p), codegen


def _tighten(
    typing_context: Any, rows: Any, weights: Any, normals: Any, across: Any, x: Any, c: Any, tension: Any
) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(_element(signature.args[1]), WIDTH)
        row_data, weight_data, normal_data, across_data, x_data, tension_data = (
            _data(context, builder, signature.args[k], args[k]) for k in (0, 1, 2, 3, 4, 6)
        )
        ends = _at(builder, row_data, args[5], WIDTH)
        weights = _load(builder, _at(builder, weight_data, args[5], WIDTH), vector)
        parts = []
        for place in range(WIDTH):
            row = builder.zext(builder.load(_at(builder, ends, place)), _LONG)
            weight = _shuffle(builder, weights, weights, [place] * WIDTH)
            parts.append(builder.fmul(_load(builder, _at(builder, x_data, row, WIDTH), vector), weight))
        apart = _sum(builder, parts)
        normal = _load(builder, _at(builder, normal_data, args[5], WIDTH), vector)
        shares = builder.fmul(apart, normal)  # the last is 0, as that of `apart`
        way = _sum(builder, [_shuffle(builder, shares, shares, [lane] * WIDTH) for lane in range(3)])
        lift = builder.fmul(_shuffle(builder, normal, normal, [3] * WIDTH), way)
        part = _spread(builder, vector, builder.load(_at(builder, across_data, args[5])))
        total = _add_product(builder, normal, lift, builder.fmul(part, apart))
        _store(builder, _without_last(builder, total), _at(builder, tension_data, args[5], WIDTH))
        return context.get_dummy_value()

    return types.void(rows, weights, normals, across, x, types.int64, tension), codegen


def _pull_row(
    typing_context: Any, items: Any, weights: Any, tension: Any, first: Any, last: Any, i: Any, y: Any
) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(_element(signature.args[1]), WIDTH)
        item_data, weight_data, tension_data, y_data = (
            _data(context, builder, signature.args[k], args[k]) for k in (0, 1, 2, 6)
        )

        def add(k: Any, totals: list[Any]) -> list[Any]:
            item = builder.zext(builder.load(_at(builder, item_data, k)), _LONG)
            weight = _spread(builder, vector, builder.load(_at(builder, weight_data, k)))
            return [
                _add_product(
                    builder, _load(builder, _at(builder, tension_data, item, WIDTH), vector), weight, totals[0]
                )
            ]

        place = _at(builder, y_data, args[5], WIDTH)
        _store(builder, _fold(builder, args[3], args[4], [_load(builder, place, vector)], add)[0], place)
        return context.get_dummy_value()

    long = types.int64
    return types.void(items, weights, tension, long, long, long, y), codegen


def _modes_product(is_lowered: bool) -> Any:
    """`lower_modes`, or `multiply_modes` where `is_lowered` is False."""

    def typed(typing_context: Any, out: Any, o: Any, a: Any, i: Any, b: Any, j: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            out_data, a_data, b_data = (
                _at(builder, _data(context, builder, signature.args[k], args[k]), args[k + 1], MODES * MODES_WIDTH)
                for k in (0, 2, 4)
            )
            columns = [_load(builder, _at(builder, a_data, p, MODES_WIDTH), _MODES_VECTOR) for p in range(MODES)]
            for column in range(MODES):
                place = _at(builder, out_data, column, MODES_WIDTH)
                products = [
                    builder.fmul(
                        columns[p],
                        _spread(builder, _MODES_VECTOR, builder.load(_at(builder, b_data, p * MODES_WIDTH + column))),
                        flags=("contract",),
                    )
                    for p in range(MODES)
                ]
                total = products[0]
                for product in products[1:]:
                    total = builder.fadd(total, product, flags=("contract",))
                if is_lowered:
                    total = builder.fsub(_load(builder, place, _MODES_VECTOR), total)
                _store(builder, total, place)
            return context.get_dummy_value()

        long = types.int64
        return types.void(out, long, a, long, b, long), codegen

    return typed


def _lower_rows(typing_context: Any, blocks: Any, q: Any, x: Any, k: Any, row: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(_element(signature.args[0]), MODES_WIDTH)
        block = _at(builder, _data(context, builder, signature.args[0], args[0]), args[1], MODES_BLOCK)
        x_data = _data(context, builder, signature.args[2], args[2])
        source, place = _at(builder, x_data, args[3], MODES_WIDTH), _at(builder, x_data, args[4], MODES_WIDTH)
        products = []
        for column in range(MODES):
            spread = _spread(builder, _MODES_VECTOR, builder.load(_at(builder, source, column)))
            values = _load(builder, _at(builder, block, column, MODES), vector)
            products.append(builder.fmul(_widened(builder, values), spread))
        _store(builder, builder.fsub(_load(builder, place, _MODES_VECTOR), _sum(builder, products)), place)
        return context.get_dummy_value()

    long = types.int64
    return types.void(blocks, long, x, long, long), codegen


def _lower_column(typing_context: Any, blocks: Any, rows: Any, first: Any, last: Any, x: Any, k: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(_element(signature.args[0]), MODES_WIDTH)
        block_data, row_data, x_data = (_data(context, builder, signature.args[k], args[k]) for k in (0, 1, 4))

        def add(q: Any, totals: list[Any]) -> list[Any]:
            row = builder.zext(builder.load(_at(builder, row_data, q)), _LONG)
            values = _load(builder, _at(builder, x_data, row, MODES_WIDTH), _MODES_VECTOR)
            block = _at(builder, block_data, q, MODES_BLOCK)
            columns = [_load(builder, _at(builder, block, column, MODES), vector) for column in range(MODES)]
            return [
                _add_product(builder, _widened(builder, column), values, total)
                for column, total in zip(columns, totals, strict=True)
            ]

        totals = _fold(builder, args[2], args[3], [_zeros(_MODES_VECTOR)] * MODES, add)
        for column, total in enumerate(totals):
            place = builder.gep(_at(builder, x_data, args[5], MODES_WIDTH), [ir.Constant(_LONG, column)])
            lanes = [builder.extract_element(total, ir.Constant(_INT, lane)) for lane in range(MODES)]
            builder.store(builder.fsub(builder.load(place), _sum(builder, lanes)), place)
        return context.get_dummy_value()

    long = types.int64
    return types.void(blocks, rows, long, long, x, long), codegen


def _add_outer(typing_context: Any, blocks: Any, k: Any, left: Any, right: Any, factor: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = _at(builder, _data(context, builder, signature.args[0], args[0]), args[1], MODES * MODES_WIDTH)
        values = _zeros(_MODES_VECTOR)
        for lane in range(MODES):
            values = builder.insert_element(values, builder.extract_value(args[2], lane), ir.Constant(_INT, lane))
        for column in range(MODES):
            place = _at(builder, block, column, MODES_WIDTH)
            spread = _spread(builder, _MODES_VECTOR, builder.fmul(args[4], builder.extract_value(args[3], column)))
            _store(builder, _add_product(builder, values, spread, _load(builder, place, _MODES_VECTOR)), place)
        return context.get_dummy_value()

    return types.void(blocks, types.int64, left, right, types.float64), codegen


multiply_row: Callable[..., None] = intrinsic(_multiply_row)
"""(rows (n, 6) int32, blocks (9 b + 1,), columns (b,) int32, factors (f,), factor_columns (f,) int32, own (9 n + 1,), x
(n, 4), i, y_inout (n, 4)): add to row i of y the products of row i of a symmetric matrix: its own block times row i of
x, and each block and each factor times what the row of x that its column names has more than row i. rows[i] tells the
first blocks, those from which on only row i gets a product, and the end; then the same of factors. Of the first ones
the row of y that the column names gets its own, too."""
multiply_block: Callable[..., None] = intrinsic(_multiply_block)
"""(blocks (9 n + 1,), x (n, 4), i, y_out (n, 4)): overwrite row i of y with block i times row i of x."""
add_multiple: Callable[..., None] = intrinsic(_add_multiple)
"""(factor, x (n, 4), i, y_inout (n, 4)): add a multiple of row i of x to row i of y."""
dot_rows: Callable[..., float] = intrinsic(_dot_rows)
"""(x (n, 4), y (n, 4), first, last): the sum of the products of rows, in float64."""
gather_rows: Callable[..., None] = intrinsic(_gather_rows)
"""(r (n, 4), arms (n, 4), first, last, out (m, 8), a): overwrite row a of `out` with the sums of r and of arm x r."""
turn_row: Callable[..., None] = intrinsic(_turn_row)
"""(ways (six numbers), arms (n, 4), i, z (n, 4), factor, p_inout (n, 4)): overwrite row i of p with z, plus the shift
and the turn of an arm that `ways` are, plus a multiple of p."""
tighten: Callable[..., None] = intrinsic(_tighten)
"""(rows (m, 4) int32, weights (m, 4), normals (m, 4), across (m,), x (n, 4), c, tension_out (m, 4)): overwrite row c of
the tension with s times `across`, and the part of s along the normal times the last of the normal's four numbers; s is
the weighted sum of four rows of x."""
pull_row: Callable[..., None] = intrinsic(_pull_row)
"""(items (k,) int32, weights (k,), tension (m, 4), first, last, i, y_inout (n, 4)): add to row i of y the rows of the
tension that items `first` to `last` name, each times its weight."""
multiply_modes: Callable[..., None] = intrinsic(_modes_product(is_lowered=False))
"""(out (k, 6, 8), o, a (m, 6, 8), i, b (n, 6, 8), j): overwrite block o with a_i times b_j transposed; float64."""
lower_modes: Callable[..., None] = intrinsic(_modes_product(is_lowered=True))
"""(out_inout, o, a, i, b, j): the same, subtracted from block o."""
add_outer: Callable[..., None] = intrinsic(_add_outer)
"""(out_inout (k, 6, 8), o, left, right (six numbers each), factor): add `factor` left right^T to block o; float64."""
lower_row: Callable[..., None] = intrinsic(_lower_rows)
"""(blocks (36 m + 2,), q, x_inout (n, 8), k, row): subtract block q times row k of x from another `row` of x, whose
last two numbers become of no meaning; x is float64."""
lower_column: Callable[..., None] = intrinsic(_lower_column)
"""(blocks (36 m + 2,), rows (m,) int32, first, last, x_inout (n, 8), k): subtract from row k of x the sum of blocks
`first` to `last`, each transposed times the row of x that `rows` names; x is float64."""
