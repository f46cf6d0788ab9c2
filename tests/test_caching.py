"""Properties that are computed once."""

import threading
from dataclasses import dataclass

from bifactor._compat import cached_property


@dataclass(frozen=True)
class Thing:
    number: int

    @cached_property
    def doubled(self) -> list[int]:
        """Twice the number."""
        return [2 * self.number]


def test_it_is_computed_once_for_each_object():
    one, two = Thing(1), Thing(2)
    assert one.doubled is one.doubled
    assert (one.doubled, two.doubled) == ([2], [4])
    assert Thing.doubled.__doc__ == "Twice the number."


def test_objects_in_several_threads_do_not_wait_for_each_other():
    together = threading.Barrier(2, timeout=10)

    class Meeting:
        @cached_property
        def met(self):
            return together.wait() >= 0

    meetings = [Meeting(), Meeting()]
    threads = [threading.Thread(target=lambda m=meeting: m.met) for meeting in meetings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(meeting.met for meeting in meetings)
