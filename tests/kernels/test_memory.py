"""Memory is handed out again only when nobody holds it."""

import threading

import numpy as np

from bifactor.kernels import memory
from bifactor.kernels.memory import REUSED_BYTES, empty, recycle_buffers, zeros

SIZE = REUSED_BYTES // 8


def address(a):
    return a.__array_interface__["data"][0]


def test_memory_comes_back():
    with recycle_buffers():
        a = empty(SIZE, np.float64)
        where = address(a)
        del a
        b = empty((SIZE // 4, 4), np.float64)
        assert address(b) == where
        assert b.flags.c_contiguous
        assert b.flags.writeable


def test_what_is_held_is_left_alone():
    with recycle_buffers():
        held = [empty(SIZE, np.float64) for _ in range(3)]
        for k, a in enumerate(held):
            a[:] = k
        part = held[1].reshape(-1, 4)[1:, 2]  # a view of a view keeps the memory too
        held[1] = None
        others = [zeros(SIZE, np.float64) for _ in range(4)]
        assert np.all(held[0] == 0)
        assert np.all(held[2] == 2)
        assert np.all(part == 1)
        addresses = {address(a) for a in (held[0], held[2], *others)}
        assert len(addresses) == 6


def test_other_sizes_small_arrays_and_outside_are_plain():
    with recycle_buffers():
        a = empty(SIZE, np.float64)
        where = address(a)
        del a
        assert address(empty(2 * SIZE, np.float64)) != where
        assert address(empty(2 * SIZE, np.float32)) == where
        assert empty(3, np.float64).base is None
    assert empty(SIZE, np.float64).base is None
    np.testing.assert_array_equal(zeros(SIZE, np.float32), 0)


def test_arrays_outlive_the_context():
    with recycle_buffers():
        with recycle_buffers():
            a = zeros(SIZE, np.float64)
            a += 7
        b = empty(SIZE, np.float64)
        b[:] = 1
    assert np.all(a == 7)


def test_threads_do_not_share():
    found = []
    with recycle_buffers():
        kept = empty(SIZE, np.float64)
        where = address(kept)
        del kept
        thread = threading.Thread(target=lambda: found.append(address(empty(SIZE, np.float64)) == where))
        thread.start()
        thread.join()
    assert found == [False]


def test_memory_of_sizes_that_nobody_asks_for_any_more_is_let_go():
    with recycle_buffers():
        pool = memory._buffers.get()
        kept = zeros(SIZE, np.float64)
        for k in range(3 * memory.IDLE):
            empty(2 * SIZE + k * SIZE, np.float64)  # larger each time, so that none serves the next
        assert len(pool.buffers) <= memory.IDLE + 3
        assert any(buffer is kept.base for buffer in pool.buffers)
        np.testing.assert_array_equal(kept, 0)
