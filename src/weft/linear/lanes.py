"""Products of 3 x 3 blocks with vectors of three, one register a column.

A block is stored as (3, 4): three columns, each padded by a zero, and a vector as four numbers, the last of them 0.
LLVM's vector types map a column to one register; numba does not find them by itself, and takes twice as long. The
functions here become part of every `@kernel` that calls them; they take arrays of float32 or of float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

WIDTH = 4
_INT = ir.IntType(32)
_LONG = ir.IntType(64)


def _data(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    return context.make_array(array_type)(context, builder, array).data


def _load(builder: Any, pointer: Any, vector: Any) -> Any:
    loaded = builder.load(builder.bitcast(pointer, vector.as_pointer()))
    loaded.align = 4
    return loaded


def _zeros(vector: Any) -> Any:
    return ir.Constant(vector, [0.0] * WIDTH)


def _spread(builder: Any, vector: Any, scalar: Any) -> Any:
    """A register with `scalar` in every lane."""
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(_INT, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_INT, WIDTH), [0] * WIDTH))


def _add_products(builder: Any, vector: Any, block: Any, x: Any, totals: list[Any]) -> list[Any]:
    """Each of three totals plus a column of the block times its part of x, for pointers to the first numbers of both.

    A sum for each column: one sum for all would wait for itself, and take twice as long.
    """
    sums = []
    for column, total in enumerate(totals):
        spread = _spread(builder, vector, builder.load(builder.gep(x, [ir.Constant(_LONG, column)])))
        values = _load(builder, builder.gep(block, [ir.Constant(_LONG, WIDTH * column)]), vector)
        sums.append(builder.fadd(builder.fmul(values, spread, flags=("contract",)), total, flags=("contract",)))
    return sums


def _sum(builder: Any, totals: list[Any]) -> Any:
    result = totals[0]
    for total in totals[1:]:
        result = builder.fadd(result, total)
    return result


def _store(builder: Any, value: Any, array: Any, row: Any, vector: Any) -> None:
    place = builder.gep(array, [builder.mul(row, ir.Constant(_LONG, WIDTH))])
    builder.store(value, builder.bitcast(place, vector.as_pointer())).align = 4


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


def _row_of(builder: Any, columns: Any, k: Any, x: Any) -> Any:
    """Where the row of x starts that column k names."""
    column = builder.zext(builder.load(builder.gep(columns, [k])), _LONG)
    return builder.gep(x, [builder.mul(column, ir.Constant(_LONG, WIDTH))])


def _row_product(is_block: bool) -> Any:
    """`multiply_row`, or `add_multiples` where `is_block` is False."""

    def typed(typing_context: Any, values: Any, columns: Any, first: Any, last: Any, x: Any, i: Any, y: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            element = ir.FloatType() if signature.args[0].dtype == types.float32 else ir.DoubleType()
            vector = ir.VectorType(element, WIDTH)
            value_data, column_data, x_data, y_data = (
                _data(context, builder, signature.args[k], args[k]) for k in (0, 1, 4, 6)
            )

            def add(k: Any, totals: list[Any]) -> list[Any]:
                x_row = _row_of(builder, column_data, k, x_data)
                if is_block:
                    block = builder.gep(value_data, [builder.mul(k, ir.Constant(_LONG, 3 * WIDTH))])
                    return _add_products(builder, vector, block, x_row, totals)
                spread = _spread(builder, vector, builder.load(builder.gep(value_data, [k])))
                product = builder.fmul(_load(builder, x_row, vector), spread, flags=("contract",))
                return [builder.fadd(product, totals[0], flags=("contract",))]

            place = builder.gep(y_data, [builder.mul(args[5], ir.Constant(_LONG, WIDTH))])
            starts = [_zeros(vector)] * 3 if is_block else [_load(builder, place, vector)]
            total = _sum(builder, _fold(builder, args[2], args[3], starts, add))
            _store(builder, total, y_data, args[5], vector)
            return context.get_dummy_value()

        return types.void(values, columns, types.int64, types.int64, x, types.int64, y), codegen

    return typed


def _multiply_block(typing_context: Any, blocks: Any, x: Any, i: Any, y: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        element = ir.FloatType() if signature.args[0].dtype == types.float32 else ir.DoubleType()
        vector = ir.VectorType(element, WIDTH)
        block_data, x_data, y_data = (_data(context, builder, signature.args[k], args[k]) for k in (0, 1, 3))
        x_row = builder.gep(x_data, [builder.mul(args[2], ir.Constant(_LONG, WIDTH))])
        block = builder.gep(block_data, [builder.mul(args[2], ir.Constant(_LONG, 3 * WIDTH))])
        total = _sum(builder, _add_products(builder, vector, block, x_row, [_zeros(vector)] * 3))
        _store(builder, total, y_data, args[2], vector)
        return context.get_dummy_value()

    return types.void(blocks, x, types.int64, y), codegen


multiply_row: Callable[..., None] = intrinsic(_row_product(is_block=True))
"""(blocks (b, 3, 4), columns (b,) int32, first, last, x (n, 4), i, y_out (n, 4)): overwrite row i of y with the sum of
blocks `first` to `last`, each times the row of x that its column names."""
add_multiples: Callable[..., None] = intrinsic(_row_product(is_block=False))
"""(factors (b,), columns (b,) int32, first, last, x (n, 4), i, y_inout (n, 4)): add to row i of y the sum of factors
`first` to `last`, each times the row of x that its column names."""
multiply_block: Callable[..., None] = intrinsic(_multiply_block)
"""(blocks (n, 3, 4), x (n, 4), i, y_out (n, 4)): overwrite row i of y with block i times row i of x."""
