import numpy as np

from weft.collision.broad.pair_buffer import N_CHUNKS, STRIDE, PairBuffer


def test_every_chunk_is_visited_once():
    assert sorted((i * STRIDE) % N_CHUNKS for i in range(N_CHUNKS)) == list(range(N_CHUNKS))


class Search:
    """Finds so many rows in each chunk, and counts how often it is asked."""

    def __init__(self, counts):
        self.rows = [np.stack([np.full(n, c), np.arange(n)], 1) for c, n in enumerate(counts)]
        self.calls = 0

    def __call__(self, starts, rows_out, counts_out):
        self.calls += 1
        for chunk, rows in enumerate(self.rows):
            room = starts[chunk + 1] - starts[chunk]
            rows_out[starts[chunk] : starts[chunk] + min(room, len(rows))] = rows[:room]
            counts_out[chunk] = len(rows)


def filled(buffer, counts):
    """Fill `buffer` with rows of chunks, check them, and return how many searches that took."""
    search = Search(counts)
    np.testing.assert_array_equal(buffer.fill(search), np.concatenate(search.rows))
    return search.calls


def test_an_overflow_grows_and_drops_nothing():
    buffer, counts = PairBuffer(), [5, 1000, 0, 70] + [1] * (N_CHUNKS - 4)
    assert filled(buffer, counts) == 2
    assert filled(buffer, counts) == 1


def test_what_is_dense_may_move_to_another_chunk():
    buffer, counts = PairBuffer(), [300] * (N_CHUNKS // 2) + [900] * (N_CHUNKS // 2)
    assert filled(buffer, counts) == 2
    assert filled(buffer, counts[::-1]) == 1


def test_one_full_chunk_does_not_make_all_large():
    buffer, counts = PairBuffer(), [10**6] + [10] * (N_CHUNKS - 1)
    assert filled(buffer, counts) == 2
    assert len(buffer.rows) < 20 * sum(counts)
