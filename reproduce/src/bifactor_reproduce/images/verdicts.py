"""What is claimed about the completion of photographs, judged by our own runs."""

from collections.abc import Mapping, Sequence
from statistics import median

from bifactor_reproduce.harness.experiment import Outcome
from bifactor_reproduce.harness.items import Verdict
from bifactor_reproduce.images.cells import FLOW, OURS_RIDGED, RIDGED, Summary
from bifactor_reproduce.noiselets.cells import CALIBRATED, PRINTED

ALIKE = 0.5
"""Decibels within which PSNRs count as the same."""

NEAR, HALF = 0.1, 0.5
"""Decibels that PCG may be below the best, and the part of the fastest one's time that it may take."""

OTHERS = ("SVP", FLOW, PRINTED, CALIBRATED)

PAPER = "0.75, 0.49 and 0.71"
"""BFGD's seconds over those of Procrustes Flow in Table 6."""

Methods = Mapping[str, Summary]


def verdicts(title: str, methods: Methods) -> list[Verdict]:
    """All of them for one photograph."""
    judged = [
        _as_good(methods),
        _competitive(methods),
        _faster(methods),
        _ours(methods, "PCG", OTHERS, "Without a ridge, as in the paper, PCG"),
        _ours(methods, OURS_RIDGED, (*OTHERS, RIDGED), "With the ridge that BFGD gets too, PCG"),
    ]
    return [Verdict(f"{title}: {v.claim}", v.holds, v.numbers, v.note, v.ours) for v in judged]


def _as_good(methods: Methods) -> Verdict:
    known = _known(methods, (CALIBRATED, "SVP"))
    return Verdict(
        f"BFGD (calibrated step) recovers the photograph as SVP does: PSNRs within {ALIKE} dB.",
        None if known is None else abs(known[0].psnr - known[1].psnr) <= ALIKE,
        _listed(methods, (CALIBRATED, PRINTED, "SVP")),
        _overfitted(methods, (CALIBRATED, "SVP")),
    )


def _competitive(methods: Methods) -> Verdict:
    known = _known(methods, (CALIBRATED, "SVP", FLOW))
    return Verdict(
        "BFGD (calibrated step) is competitive with SVP and Procrustes Flow: its PSNR is no more than "
        f"{ALIKE} dB below either.",
        None if known is None else all(known[0].psnr >= other.psnr - ALIKE for other in known[1:]),
        _listed(methods, (CALIBRATED, "SVP", FLOW)),
    )


def _faster(methods: Methods) -> Verdict:
    known = _known(methods, (CALIBRATED, FLOW))
    times = [] if known is None else _to_the_end_of(known[1].outcomes, known[0].outcomes)
    arrived = [mine for mine, _ in times if mine is not None]
    told = f"{len(arrived)} of {len(times)} runs of BFGD come to it"
    if arrived:
        told += f", after {median(arrived):.3g} s; Procrustes Flow needs {median(own for _, own in times):.3g} s"
    if known is not None:
        told += f"; whole runs of BFGD take {known[0].seconds / known[1].seconds:.2f} of its time, in the paper {PAPER}"
    return Verdict(
        "BFGD (calibrated step) is faster than Procrustes Flow: it comes sooner to the PSNR at which that one ends.",
        all(mine is not None and mine < own for mine, own in times) if times else None,
        told if times else "",
        "Neither stopped by itself, so that whole runs compare no more than the cost of an iteration."
        if known is not None and not any("converged" in s.stopped for s in known)
        else "",
    )


def _ours(methods: Methods, mine: str, others: Sequence[str], subject: str) -> Verdict:
    known = _known(methods, (mine, *others))
    told = ""
    if known is not None:
        rivals = {method: methods[method] for method in others}
        best = max(rivals, key=lambda method: rivals[method].psnr)
        fastest = min(rivals, key=lambda method: rivals[method].seconds)
        told = (
            f"{known[0].psnr:.2f} dB in {known[0].seconds:.3g} s; the best of the others, {best}, has "
            f"{rivals[best].psnr:.2f} dB, the fastest, {fastest}, takes {rivals[fastest].seconds:.3g} s"
        )
    return Verdict(
        f"{subject} is within {NEAR} dB of the best algorithm, in at most half of the fastest other one's time.",
        None if known is None else _ahead(known[0], known[1:]),
        told,
        _overfitted(methods, (mine,)),
        ours=True,
    )


def _ahead(mine: Summary, others: Sequence[Summary]) -> bool:
    near = mine.psnr >= max(other.psnr for other in others) - NEAR
    return near and mine.seconds <= HALF * min(other.seconds for other in others)


def _known(methods: Methods, names: Sequence[str]) -> list[Summary] | None:
    """None where one is missing."""
    return [methods[name] for name in names] if all(name in methods for name in names) else None


def _listed(methods: Methods, names: Sequence[str]) -> str:
    return ", ".join(f"{name} {methods[name].psnr:.2f} dB" for name in names if name in methods)


def _overfitted(methods: Methods, names: Sequence[str]) -> str:
    """What to say of algorithms whose PSNR has fallen."""
    told = [
        f"{name} was at {methods[name].best:.2f} dB on the way"
        for name in names
        if name in methods and methods[name].best - methods[name].psnr > ALIKE
    ]
    fit = (
        "without a ridge, fitting the known pixels better makes the hidden ones worse here, and being slow is rewarded"
    )
    return "; ".join([*told, f"{fit}."]) if told else ""


def _to_the_end_of(slow: Mapping[int, Outcome], fast: Mapping[int, Outcome]) -> list[tuple[float | None, float]]:
    """Seconds to the PSNR at which the slow one ends, of the fast one and of the slow one, for seeds of both."""
    pairs = []
    for seed in slow:
        if seed in fast:
            goal = slow[seed]["psnr"]
            own = _reached(slow[seed], goal)
            pairs.append((_reached(fast[seed], goal), slow[seed]["seconds"] if own is None else own))
    return pairs


def _reached(outcome: Outcome, goal: float) -> float | None:
    curve = outcome["curve"]
    return next((t for t, psnr in zip(curve["seconds"], curve["psnr"], strict=True) if psnr >= goal), None)
