"""Image denoising as matrix completion (§6.4: the figures of pictures, Table 6)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from bifactor.applications.pictures.files import pillow_or_advice, require_picture
from bifactor.data.text import checksum
from bifactor.errors import BifactorError
from bifactor_reproduce.harness.experiment import Experiment, Finished, Outcome, Scale
from bifactor_reproduce.harness.items import Figure, Findings, Table, Value
from bifactor_reproduce.harness.sources import VARIABLE, Sources
from bifactor_reproduce.images.cells import (
    BEST,
    FLOW,
    RIDGES,
    SOLVERS,
    STAND_INS,
    PhotoCell,
    Summary,
    chosen,
    run_cell,
    summaries,
)
from bifactor_reproduce.images.figures import curves, panels
from bifactor_reproduce.images.verdicts import verdicts
from bifactor_reproduce.noiselets.cells import CALIBRATED, PRINTED

NOTES = (
    "The paper's photographs are not public. Ours stand for them: a landscape, a painting and a panorama of the Milky "
    "Way; from a folder without these, the first three pictures are taken. Pixels are grey, from 0 to 1, and recovered "
    "ones are cut to that range before they are compared. At quick scale means over squares of pixels are taken, and "
    "the rank is so much below 100 that the known pixels for each degree of freedom, r(m + n − r), stay the paper's 6 "
    "(its third photograph has 9.8).",
    "All algorithms get the same pixels and stop by the paper's rule, the relative change of X at 5·10⁻⁶ (three times "
    "in a row) or all iterations. The paper does not say where they start; here all do from the best multiple of "
    "P_r(−∇f(0)), so that Procrustes Flow has no first phase of its own.",
    "f = ½‖P_Ω(X) − y‖² has L = 1, but on matrices of low rank a curvature of only about ρ, the share of the pixels. "
    "Each algorithm gets the longest step that its theory allows in these units. SVP has μ = 1 = 1/L: with the μ = 1/3 "
    "of the paper's other experiments it takes two to three times as many iterations, and with its authors' 3/(4ρ) it "
    "diverges on all three photographs. Procrustes Flow and BFGD's printed rule (12) have ρ for L and in the weight of "
    "g; with 1 they are slower by 1/ρ. BFGD's calibrated step is η = 1/(2√ρ‖[U₀; V₀]‖₂²), as in the other experiments.",
    "No photograph is of low rank. Where its known pixels say too little about some rows or columns, as the Milky "
    "Way's about the few rows that are bright, the minimiser of f has values far outside of the range of pixels, and "
    "the PSNR falls while f does: then the slowest algorithm is ahead, whatever its merits. A ridge (λ/2)(‖U‖² + ‖V‖²) "
    "is the remedy. BFGD and PCG can have one and get a row each with the same λ; SVP and Procrustes Flow, which work "
    "on f alone, cannot. λ is one round number for each scale, the same for all photographs. At quick scale, pixels "
    "held out from the known ones of another choice prefer 0.3 to 0.5, and the PSNR against the photograph, at which "
    "we looked as well, 0.3; at the paper's scale, 1 lies between what the three photographs prefer.",
    "Seconds are processor seconds of one thread, the start included, without those spent on PSNRs and compilation. "
    "The paper's are Matlab's on another machine, so that only their ratios compare.",
)


@dataclass(frozen=True)
class Original:
    """A photograph of the paper, and what its Table 6 says."""

    name: str
    size: str
    seconds: Mapping[str, float]


ORIGINALS = {
    "sunset": Original("UT Campus", "2845 × 4266", {"SVP": 5224.1, FLOW: 5383.4, "BFGD": 4062.4}),
    "elephants-painting": Original("Graffiti", "3309 × 4963", {"SVP": 4154.9, FLOW: 6501.4, "BFGD": 3155.9}),
    "milkyway-eso0932a": Original("Milky way", "4862 × 9725", {"SVP": 7921.4, FLOW: 12806.3, "BFGD": 9119.6}),
}
"""By the beginnings of the names of those that stand for them."""


@dataclass(frozen=True)
class Configuration:
    """Seeds are those of the choices of pixels."""

    side: int | None
    """Pixels of the longer side, about; None for all."""
    seeds: tuple[int, ...]
    max_iter: int
    ridge: float
    """For values from 0 to 1."""
    rank: int = 100
    freedom: float = 6.0
    """Known pixels for each degree of freedom, at least; the rank is lowered for it."""
    shares: tuple[float, ...] = (0.35, 0.30, 0.30)
    tol: float = 5e-6
    """On ‖Xₜ − Xₜ₋₁‖_F/‖Xₜ‖_F, three times in a row."""
    budget: float = 600.0
    """Processor seconds of a cell."""


class Images(Experiment[PhotoCell]):
    name = "images"
    title = "Image denoising as matrix completion"
    place = "§6.4, figures of pictures, Table 6"
    configurations: ClassVar[Mapping[Scale, Configuration]] = {
        "quick": Configuration(700, (1, 2, 3), 2000, 0.3),
        "paper": Configuration(None, tuple(range(1, 11)), 4000, 1.0),
    }

    def missing(self, sources: Sources) -> str | None:
        if sources.photos is None:
            return f"There are no photographs. Pass a folder of them, or set {VARIABLE} to one with photos-large/."
        try:
            pillow_or_advice()
            pictures = chosen(sources.photos)
            for path in pictures:
                require_picture(path)
        except BifactorError as error:
            return str(error)
        return None if pictures else f"There is no picture in {sources.photos}. Pass a folder of png, jpeg or the like."

    def cells(self, scale: Scale, sources: Sources) -> list[PhotoCell]:
        assert sources.photos is not None  # else it is missing
        c = self.configurations[scale]
        cells = []
        for path, share in zip(chosen(sources.photos), c.shares, strict=False):
            limits = (c.seeds[0], c.tol, c.max_iter, c.budget)
            first = PhotoCell(path.name, checksum(path), c.side, c.rank, c.freedom, share, BEST, 0.0, *limits, True)
            cells.append(first)
            for seed in c.seeds:
                same = replace(first, seed=seed, shown=seed == c.seeds[0])
                cells += [replace(same, method=m, ridge=c.ridge if m in RIDGES else 0.0) for m in SOLVERS]
        return cells

    def run(self, cell: PhotoCell, sources: Sources) -> Outcome:
        assert sources.photos is not None
        return run_cell(cell, sources.photos)

    def label(self, cell: PhotoCell) -> str:
        return f"{_title(cell.photo)}, {cell.method}"

    def findings(self, finished: Sequence[Finished[PhotoCell]]) -> Findings:
        found = summaries(finished)
        titles = {photo: _title(photo) for photo in found}
        items: list[Table | Figure] = [_photographs(finished), _table(finished, found), *curves(finished, titles)]
        items += panels(finished, titles)
        return Findings(items, [v for photo in found for v in verdicts(titles[photo], found[photo])], NOTES)


def _title(photo: str) -> str:
    """The name without its ending, and without a size."""
    return re.sub(r"_\d+x\d+$", "", Path(photo).stem)


def _original(photo: str) -> Original | None:
    return next((ORIGINALS[name] for name in STAND_INS if photo.startswith(name)), None)


def _photographs(finished: Sequence[Finished[PhotoCell]]) -> Table:
    rows: list[list[Value]] = []
    for photo in dict.fromkeys(cell.photo for cell, _ in finished):
        of_photo = [done for done in finished if done.cell.photo == photo]
        (m, n), rank = of_photo[0].outcome["shape"], of_photo[0].outcome["rank"]
        pixels, theirs = of_photo[0].outcome["pixels"], _original(photo)
        ceiling = next((outcome["psnr"] for cell, outcome in of_photo if cell.method == BEST), None)
        rows.append(
            [_title(photo), f"{m} × {n}", rank, of_photo[0].cell.share, pixels / (rank * (m + n - rank)), ceiling]
            + ([None, None] if theirs is None else [theirs.name, theirs.size])
        )
    return Table(
        "images-photographs",
        "The photographs",
        "The PSNR is that of the whole photograph cut to the rank, the ceiling for what is recovered. The paper's rank "
        "is 100, with the same shares of the pixels.",
        (
            "photograph",
            "pixels",
            "rank",
            "share known",
            "known pixels for each degree of freedom",
            "PSNR of the best of that rank",
            "stands for the paper's",
            "paper's pixels",
        ),
        rows,
        {"rank": "d", "share known": ".0%", "PSNR of the best of that rank": ".2f"},
    )


def _table(finished: Sequence[Finished[PhotoCell]], found: Mapping[str, Mapping[str, Summary]]) -> Table:
    rows: list[list[Value]] = []
    for photo, methods in found.items():
        theirs = _original(photo)
        for method, s in methods.items():
            known = {PRINTED: "BFGD", CALIBRATED: "BFGD"}.get(method, method)
            seconds = None if theirs is None else theirs.seconds.get(known)
            rows.append([_title(photo), method, s.psnr, s.best, s.against, s.seconds, seconds, s.iterations, s.stopped])
    return Table(
        "images-table-6",
        "Table 6: times, and the PSNRs of the figures",
        f"Medians over {_choices(finished)}. PSNR in dB against the photograph, its highest value on the way, and PSNR "
        "against the photograph cut to the rank. The paper has PSNRs only inside of its figures, which are not at "
        "hand. Beside both rows of BFGD stands the paper's one.",
        (
            "photograph",
            "algorithm",
            "PSNR",
            "highest PSNR",
            "PSNR against the best of the rank",
            "seconds",
            "paper's seconds",
            "iterations",
            "ended by",
        ),
        rows,
        dict.fromkeys(("PSNR", "highest PSNR", "PSNR against the best of the rank"), ".2f") | {"iterations": ".0f"},
    )


def _choices(finished: Sequence[Finished[PhotoCell]]) -> str:
    count = len({cell.seed for cell, _ in finished})
    return f"{count} choices of pixels" if count > 1 else "one choice of pixels"
