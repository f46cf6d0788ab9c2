"""What the paper claims about 1-bit completion against noise, judged by our own runs."""

from collections.abc import Callable
from typing import NamedTuple

from bifactor_reproduce.harness.items import Verdict
from bifactor_reproduce.one_bit.cells import BALL, EARLY, LATE, LATER, OWN, SOON, VALIDATED, debiased
from bifactor_reproduce.one_bit.series import (
    ALIKE,
    CONVEX,
    CUT,
    Runs,
    Series,
    average,
    average_ratio,
    shared,
    span,
    time_verdict,
)

SWEET = (0.1, 0.4)
"""The paper's “sweet range” of noise levels, to which it gives no numbers."""

POOR = 1.2
"""How many times the least error the errors at both ends are, where recovery there is called poor."""

BETTER, NEAR = 0.30, 0.15
"""How much lower BFGD's error is than SPG's as it is, and how near to SPG's debiased."""

POINTS, CLOSE = 0.05, 0.02
"""How many more signs BFGD has right than SPG as it is, and how many fewer than SPG debiased at most."""

NOTABLE = 0.005
"""The share of all signs, half a row, by which one pattern is called better than another."""

ORACLE = f"With T = {SOON}, which one finds by looking at X*, it holds: the claim needs an oracle's stopping rule."


class Judged(NamedTuple):
    """A claim for one stopping rule of BFGD."""

    holds: bool | None
    numbers: str


Judge = Callable[[str], Judged]


def verdicts(runs: Runs, errors: Series, signs: Series) -> list[Verdict]:
    """All of them; those about BFGD by its validated runs, with what T = 200 would give beside."""
    both = [
        (
            "Without debias, BFGD has a lower error than SPG at every noise level of the sweet range.",
            _lower_everywhere(errors, CONVEX),
            "",
        ),
        (
            f"Without debias, BFGD's error in the sweet range is at least {BETTER:.0%} lower than SPG's, on average.",
            _on_average(errors, CONVEX, lambda ratio: ratio <= 1 - BETTER),
            "The paper gives no number; this threshold is ours.",
        ),
        (
            f"With debias, BFGD and SPG are comparable: within {NEAR:.0%} in the sweet range, on average.",
            _on_average(errors, CUT, lambda ratio: abs(ratio - 1) <= NEAR),
            "",
        ),
        (
            "With debias, SPG is slightly better than BFGD in the sweet range.",
            _on_average(errors, CUT, lambda ratio: ratio > 1),
            "",
        ),
        (
            f"In the sweet range BFGD has at least {100 * POINTS:.0f} points more signs right than SPG as it is, and "
            f"at most {100 * CLOSE:.0f} fewer than SPG debiased.",
            _signs_near(signs),
            "The paper's own claim about signs is the next one; these thresholds are ours.",
        ),
        (
            f"BFGD's sign pattern is better than SPG's even with debias: by {100 * NOTABLE:g} points or more, over all "
            "noise levels.",
            _signs_better(signs),
            "At r = 1 both look for the signs of two vectors in the same data, and little can lie between them.",
        ),
    ]
    told = [_by_rule(claim, judge, note) for claim, judge, note in both]
    return [_u_shaped(errors), *told, _goes_on(errors), *_ours(runs, errors)]


def _by_rule(claim: str, judge: Judge, note: str) -> Verdict:
    validated, early = judge(VALIDATED), judge(EARLY)
    numbers = f"stopped by validation: {validated.numbers}; with T = {SOON}: {early.numbers}"
    oracle = ORACLE if validated.holds is False and early.holds else ""
    return Verdict(claim, validated.holds, numbers, " ".join(text for text in (oracle, note) if text))


def _sweet(s: float) -> bool:
    return SWEET[0] <= s <= SWEET[1]


def _u_shaped(errors: Series) -> Verdict:
    names = [*CONVEX, *CUT, VALIDATED, EARLY]
    told, checks = [], []
    for name in names:
        line = errors.get(name, {})
        if len(line) < 3:
            continue
        least, ends = min(line, key=line.__getitem__), (line[min(line)], line[max(line)])
        checks.append(_sweet(least) and min(ends) >= POOR * line[least])
        told.append(f"{name}: {line[least]:.2f} at s = {least:.3g}, {ends[0]:.2f} and {ends[1]:.2f} at the ends")
    return Verdict(
        "All algorithms do poorly when the noise is too small or too large, and better in between: the least error is "
        f"at {SWEET[0]:g} ≤ s ≤ {SWEET[1]:g}, and at both ends it is {POOR:g} times as large or more.",
        all(checks) if len(checks) == len(names) else None,
        "; ".join(told) or "no runs",
        "The noise works as a dither: without it a sign says nothing about the size of an entry.",
    )


def _lower_everywhere(errors: Series, convex: tuple[str, ...]) -> Judge:
    def judge(name: str) -> Judged:
        places = shared(errors, [name, *convex], _sweet)
        ratios = [errors[name][s] / min(errors[other][s] for other in convex) for s in places]
        if not ratios:
            return Judged(None, "no runs")
        return Judged(max(ratios) < 1, f"{span(ratios)} of SPG's error (the better of its two)")

    return judge


def _on_average(errors: Series, convex: tuple[str, ...], test: Callable[[float], bool]) -> Judge:
    """By the ratio of BFGD's error to SPG's, which must pass for both of SPG's constraint sets."""

    def judge(name: str) -> Judged:
        ratios = _ratios(errors, name, convex)
        if not ratios:
            return Judged(None, "no runs")
        return Judged(all(test(ratio) for ratio in ratios), f"{span(ratios)} of SPG's error")

    return judge


def _signs_near(signs: Series) -> Judge:
    def judge(name: str) -> Judged:
        places = shared(signs, [name, *CONVEX, *CUT], _sweet)
        if not places:
            return Judged(None, "no runs")
        own, as_is, after = (min(average(signs, one, places) for one in which) for which in ((name,), CONVEX, CUT))
        holds = as_is - own >= POINTS and own - after <= CLOSE
        return Judged(holds, f"{1 - own:.1%} right, SPG {1 - as_is:.1%} as it is and {1 - after:.1%} debiased")

    return judge


def _signs_better(signs: Series) -> Judge:
    def judge(name: str) -> Judged:
        places = shared(signs, [name, *CUT], lambda s: True)
        if not places:
            return Judged(None, "no runs")
        own, other = average(signs, name, places), min(average(signs, one, places) for one in CUT)
        gaps = [signs[name][s] - min(signs[one][s] for one in CUT) for s in places]
        counts = f"better at {sum(g < 0 for g in gaps)} and worse at {sum(g > 0 for g in gaps)} of {len(gaps)} levels"
        return Judged(other - own >= NOTABLE, f"{own:.1%} wrong on average, SPG debiased {other:.1%}, {counts}")

    return judge


def _goes_on(errors: Series) -> Verdict:
    name = LATE
    ratios = _ratios(errors, name, CONVEX)
    return Verdict(
        f"BFGD as the paper states it, without a stopping rule: after {LATER} iterations, too, its error in the sweet "
        "range is lower than that of SPG as it is, on average.",
        max(ratios) < 1 if ratios else None,
        f"{span(ratios)} of SPG's error" if ratios else "no runs",
        "The paper states no constraint, ridge or early stop for BFGD here. The likelihood has no maximum, and X grows "
        "for as long as BFGD runs; figures like the paper's need some rule that it does not give.",
    )


def _ours(runs: Runs, errors: Series) -> list[Verdict]:
    ratios, cut = _ratios(errors, OWN, (VALIDATED,)), _ratios(errors, OWN, (debiased(BALL),))
    return [
        Verdict(
            f"PCG with a validated ridge is no worse than BFGD stopped by validation: at most {ALIKE:g} times its "
            "error in the sweet range, on average.",
            ratios[0] <= ALIKE if ratios else None,
            f"{ratios[0]:.2f} times BFGD's error, {cut[0]:.2f} times that of SPG debiased"
            if ratios and cut
            else "no runs",
            "A ridge gives the likelihood a maximum, so that the answer does not depend on when one stops.",
            ours=True,
        ),
        time_verdict(runs, "all levels"),
    ]


def _ratios(errors: Series, name: str, others: tuple[str, ...]) -> list[float]:
    """Of one error to each of the others, on average over the sweet range; none where one is missing."""
    places = shared(errors, [name, *others], _sweet)
    return [average_ratio(errors, name, other, places) for other in others] if places else []
