import numpy as np

from weft.collision.broad.pair_buffer import N_CHUNKS, STRIDE, PairBuffer


def test_every_chunk_is_visited_once():
    assert sorted((i * STRIDE) % N_CHUNKS for i in range(N_CHUNKS)) == list(range(N_CHUNKS))


def test_an_overflow_grows_and_drops_nothing():
    wanted = [np.stack([np.full(n, c), np.arange(n)], 1) for c, n in enumerate([5, 1000, 0, 70] + [1] * (N_CHUNKS - 4))]
    calls = []

    def search(starts, rows_out, counts_out):
        calls.append(len(rows_out))
        for chunk, rows in enumerate(wanted):
            room = starts[chunk + 1] - starts[chunk]
            rows_out[starts[chunk] : starts[chunk] + min(room, len(rows))] = rows[:room]
            counts_out[chunk] = len(rows)

    buffer = PairBuffer()
    for _ in range(2):
        np.testing.assert_array_equal(buffer.fill(search), np.concatenate(wanted))
    assert len(calls) == 3  # the second time it fits at once
