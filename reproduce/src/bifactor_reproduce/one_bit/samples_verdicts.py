"""What the paper claims about 1-bit completion against the number of entries, judged by our own runs."""

from collections.abc import Callable

from bifactor_reproduce.harness.items import Verdict
from bifactor_reproduce.one_bit.cells import BALL, EARLY, LATE, LATER, OWN, SOON, VALIDATED
from bifactor_reproduce.one_bit.series import ALIKE, CONVEX, CUT, Runs, Series, shared, span, time_verdict

ByRank = dict[int, Series]

EDGE, MARGIN = 0.35, 0.05
"""Of C, below which the paper calls all recovery poor; how far beyond it the other claims begin."""

POOR = 0.5
"""The error from which on recovery is called poor; the paper gives no number."""

NEARBY = 1.5
"""How many times the number of unknowns a number of entries is that is called near it."""


def verdicts(runs: Runs, errors: ByRank) -> list[Verdict]:
    """All of them; those about BFGD by its validated runs, with what T = 200 would give beside."""
    return [
        _poor(errors),
        _limit(runs),
        _outperforms(errors, "SPG as it is", CONVEX),
        _outperforms(errors, "SPG debiased", CUT),
        _reasonable(errors),
        _goes_on(errors),
        _alike(errors),
        time_verdict(runs, "all ranks and C"),
    ]


def _poor(errors: ByRank) -> Verdict:
    names, told, least = (*CONVEX, *CUT, VALIDATED, EARLY), [], []
    for rank, series in errors.items():
        below = [(series[name][C], name, C) for name in names for C in series.get(name, {}) if C < EDGE]
        if not below:
            continue
        error, name, C = min(below)
        least.append(error)
        text = f"r = {rank}: the least is {error:.2f}, by {name} at C = {C:g}"
        beyond = {C: error for C, error in series.get(name, {}).items() if C > EDGE}
        told.append(f"{text}, and {beyond[min(beyond)]:.2f} at C = {min(beyond):g}" if beyond else text)
    return Verdict(
        f"All approaches do poorly for p < {EDGE:g}·n²: errors above {POOR:g}.",
        min(least) > POOR if least else None,
        "; ".join(told) or "no runs",
        "The paper gives no number for poor, this one is ours.",
    )


def _limit(runs: Runs) -> Verdict:
    known = {cell.rank: cell.rank * (2 * cell.size - cell.rank) / cell.size**2 for cell, _ in runs}
    return Verdict(
        f"{EDGE:g}·n² entries are near the noiseless information-theoretic limit: within {NEARBY:g} times the number "
        "of unknowns of X*, r(2n − r).",
        all(NEARBY * share >= EDGE for share in known.values()) if known else None,
        "; ".join(f"r = {rank}: r(2n − r) = {share:.3f}·n²" for rank, share in sorted(known.items())) or "no runs",
        "Recovery is poor because a noisy sign tells less than one bit, and not because unknowns are too many.",
    )


def _outperforms(errors: ByRank, title: str, others: tuple[str, ...]) -> Verdict:
    validated, early = (_ratios(errors, name, others) for name in (VALIDATED, EARLY))
    holds = _below_one(validated)
    return Verdict(
        f"For C > {EDGE:g}, BFGD outperforms {title}: its error is lower at every rank and C ≥ {EDGE + MARGIN:g}.",
        holds,
        f"stopped by validation: {_told(validated)}; with T = {SOON}: {_told(early)}",
        f"It does with T = {SOON}, an oracle's rule." if holds is False and _below_one(early) else "",
    )


def _reasonable(errors: ByRank) -> Verdict:
    found = {
        rank: [series[VALIDATED][share] for share in shared(series, [VALIDATED], _beyond)]
        for rank, series in errors.items()
    }
    known = {rank: values for rank, values in found.items() if values}
    return Verdict(
        f"For C > {EDGE:g}, BFGD returns more reasonable solutions: errors below {POOR:g}.",
        all(max(values) < POOR for values in known.values()) if known else None,
        "stopped by validation, "
        + ("; ".join(f"r = {rank}: {span(values)}" for rank, values in known.items()) or "no runs"),
        "The number is ours, the same as for poor above.",
    )


def _goes_on(errors: ByRank) -> Verdict:
    ratios = _ratios(errors, LATE, (BALL,))
    return Verdict(
        f"BFGD as the paper states it, without a stopping rule: after {LATER} iterations, too, its error is lower than "
        f"that of SPG as it is, at C ≥ {EDGE + MARGIN:g}.",
        _below_one(ratios),
        _told(ratios),
        "The likelihood has no maximum where entries are few, as in the experiment over noise levels.",
    )


def _alike(errors: ByRank) -> Verdict:
    ratios = _ratios(errors, OWN, (VALIDATED,), lambda share: True)
    values = [value for line in ratios.values() for value in line]
    mean = sum(values) / len(values) if values else None
    return Verdict(
        f"PCG with a validated ridge is no worse than BFGD stopped by validation: at most {ALIKE:g} times its error, "
        "on average over all ranks and C.",
        mean <= ALIKE if mean is not None else None,
        f"{mean:.2f} times, {_told(ratios, 'BFGD')}" if mean is not None else "no runs",
        ours=True,
    )


def _beyond(share: float) -> bool:
    return share >= EDGE + MARGIN


def _ratios(
    errors: ByRank, name: str, others: tuple[str, ...], within: Callable[[float], bool] = _beyond
) -> dict[int, list[float]]:
    """For each rank, one error over the least of the others that were run, at each C."""
    found = {}
    for rank, series in errors.items():
        places = shared(series, [name, others[0]], within)
        rivals = [series[other] for other in others if other in series]
        found[rank] = [series[name][x] / min(line[x] for line in rivals if x in line) for x in places]
    return {rank: ratios for rank, ratios in found.items() if ratios}


def _below_one(ratios: dict[int, list[float]]) -> bool | None:
    return all(value < 1 for line in ratios.values() for value in line) if ratios else None


def _told(ratios: dict[int, list[float]], other: str = "SPG") -> str:
    lines = (f"r = {rank}: {span(line)} of {other}'s error" for rank, line in ratios.items())
    return ", ".join(lines) or "no runs"
