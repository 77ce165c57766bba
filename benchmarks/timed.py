# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times what a peer does, again and again."""
import statistics
import time


def median_ms(step, seconds, before=2, least=5):
    """Returns the median of the milliseconds of step(), which runs for `seconds`, at least so often, after so many runs without a clock."""
    for _ in range(before):
        step()
    times, begin = [], time.perf_counter()
    while len(times) < least or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3
