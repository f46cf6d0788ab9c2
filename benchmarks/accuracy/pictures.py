"""Holes in pictures: `bf.ImageCompletion` against five simple methods, on 30 pictures with nine masks.

Pictures of 256 × 256; 11 of them, marked as new, were not used for any choice in the method. psnr_hidden is that of
hidden pixels, in dB, psnr that of all, ssim the structural similarity of scikit-image. The Gaussian average has the
best of eight widths by the truth, which favours it; its seconds are of that width. Also the speed on a megapixel, and
the peak memory at 20 megapixels. A part:
`python -m benchmarks.accuracy.pictures --pictures china flower --masks lines --sheet FILE.png`.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import bifactor as bf
from benchmarks.harness import report, table
from benchmarks.harness.measure import in_fresh_process, in_turns
from benchmarks.harness.picture_data import MASKS, PICTURES, SIDE, Picture, centre, known_pixels
from benchmarks.harness.picture_sheet import Tile, marked, write_sheet
from benchmarks.harness.picture_summary import CAPTION, summary_lines
from benchmarks.harness.rows import Absent, Case, Row, library, or_skipped, row, timed
from benchmarks.rivals.pictures import INPAINTERS, Inpainter, completed
from bifactor.applications.pictures.files import psnr

SEED = 19
"""Of the masks."""

OURS = "bf.ImageCompletion"
DATA = f"pictures of {SIDE} × {SIDE}"
HIGHEST = 60.0
"""Decibels above which pictures count as equal: a quarter of a grey level."""

SPEED_MASKS, THREADS, REPEATS = ("50 % at random", "scratches"), (1, 2), 3
MEGAPIXEL = (1000, 1000)
LARGE, LARGE_SIZE = Picture("", "photos-large/milkyway-gaia-edr3_6500x3250.jpg"), (3200, 6250)


@dataclass(frozen=True)
class Cell:
    """A picture, and which of its pixels are known."""

    truth: np.ndarray
    known: np.ndarray

    @property
    def observed(self) -> np.ndarray:
        return np.where(self.known[:, :, None] if self.truth.ndim == 3 else self.known, self.truth, np.uint8(0))

    @property
    def megapixels(self) -> float:
        return self.known.size / 1e6


def cell(picture: str, mask: str, seed: int = SEED) -> Cell:
    truth = PICTURES[picture].cut()
    return Cell(truth, known_pixels(mask, truth.shape[:2], seed, picture))


def ours(picture: np.ndarray, known: np.ndarray) -> np.ndarray:
    return bf.ImageCompletion().fit_transform(picture, known)


CANDIDATES = (Inpainter(OURS, ours), *INPAINTERS)


def measured(candidate: Inpainter, part: Cell) -> tuple[Row, np.ndarray]:
    """The numbers of a row and the picture, of the setting that is best by the truth."""
    tried = [attempt(partial(candidate.fill, **setting), part) for setting in candidate.settings]
    return max(tried, key=lambda found: found[0]["psnr_hidden"])


def attempt(fill: Callable[[np.ndarray, np.ndarray], np.ndarray], part: Cell) -> tuple[Row, np.ndarray]:
    kept: list[np.ndarray] = []
    observed = part.observed
    seconds = timed(lambda: kept.append(fill(observed, part.known)))["seconds"]
    found = completed(kept[0], observed, part.known)
    hidden = ~part.known
    numbers = {
        "psnr_hidden": decibels(found[hidden], part.truth[hidden]),
        "psnr": decibels(found, part.truth),
        "ssim": similarity(found, part.truth),
        "seconds": seconds,
        "seconds_per_megapixel": seconds / part.megapixels,
    }
    return numbers, found


def decibels(found: np.ndarray, truth: np.ndarray) -> float:
    return min(psnr(found / 255, truth / 255), HIGHEST)


def similarity(found: np.ndarray, truth: np.ndarray) -> float | None:
    """None if scikit-image is not installed."""
    try:
        metrics = library("skimage.metrics")
    except Absent:
        return None
    axis = 2 if truth.ndim == 3 else None
    return float(metrics.structural_similarity(found, truth, channel_axis=axis, data_range=255))


def cell_rows(picture: str, mask: str, seed: int = SEED) -> Iterator[Row]:
    part, new = cell(picture, mask, seed), PICTURES[picture].new
    for candidate in CANDIDATES:
        nouns = row(mask, DATA, candidate.name, draw=picture)
        yield from or_skipped(lambda c=candidate, n=nouns: [{**n, "new": new, **measured(c, part)[0]}], **nouns)


def quality(pictures: Iterable[str] = PICTURES, masks: Iterable[str] = MASKS, seed: int = SEED) -> Iterator[Row]:
    """How near all candidates come to what was hidden."""
    warm_up()
    pictures = list(pictures)
    for mask in masks:
        for name in pictures:
            nouns = {"objective": mask, "data": DATA, "draw": name}
            yield from or_skipped(lambda m=mask, n=name: cell_rows(n, m, seed), **nouns)


def warm_up() -> None:
    """Import and compile what is timed, in grey and in colour."""
    truth = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
    known = known_pixels("50 % at random", (48, 64), SEED, "noise")
    for candidate in CANDIDATES:
        or_skipped(lambda c=candidate: [measured(c, Cell(values, known))[0] for values in (truth, truth[:, :, 0])])


def speed() -> Iterator[Row]:
    """Ours alone, on one thread and on two."""
    truth = centre(PICTURES["dragonfly"].pixels(), *MEGAPIXEL)
    for mask in SPEED_MASKS:
        part = Cell(truth, known_pixels(mask, truth.shape[:2], SEED, "dragonfly"))
        candidates = {f"{OURS}, {count} thread{'s' * (count > 1)}": partial(limited, part, count) for count in THREADS}
        for found in in_turns(mask, "dragonfly, 1 megapixel", candidates, REPEATS):
            yield {**found, "seconds_per_megapixel": found["seconds"] / part.megapixels}


def limited(part: Cell, threads: int) -> np.ndarray:
    with bf.threads(threads):
        return ours(part.observed, part.known)


def memory() -> Iterator[Row]:
    """Ours alone, in a process that does nothing else; Python, its libraries and the picture are part of it."""
    for mask in SPEED_MASKS:
        yield from in_fresh_process(partial(large_rows, mask))


def large_rows(mask: str) -> list[Row]:
    truth = centre(LARGE.pixels(), *LARGE_SIZE)
    part = Cell(truth, known_pixels(mask, truth.shape[:2], SEED, "milkyway"))
    numbers = timed(lambda: ours(part.observed, part.known))
    per_megapixel = numbers["seconds"] / part.megapixels
    data = f"milky way, {part.megapixels:.0f} megapixels"
    return [row(mask, data, OURS, seconds=numbers["seconds"], seconds_per_megapixel=per_megapixel)]


def summary(rows: list[Row]) -> tuple[list[dict[str, str]], str]:
    """Lines of a table for each mask, and what they mean."""
    return summary_lines([found for found in rows if found["data"] == DATA], OURS), CAPTION


def contact_sheet(path: Path, pictures: Iterable[str], masks: Iterable[str], seed: int = SEED) -> None:
    """Write a file of pictures: original, observed, the best of the others by the truth, and ours."""
    masks = list(masks)
    write_sheet(path, [strip(picture, mask, seed) for picture in pictures for mask in masks])


def strip(picture: str, mask: str, seed: int) -> list[Tile]:
    part = cell(picture, mask, seed)
    found: dict[str, tuple[Row, np.ndarray]] = {}
    for candidate in CANDIDATES:
        with suppress(Absent):
            found[candidate.name] = measured(candidate, part)
    rivals = sorted(set(found) - {OURS}, key=lambda name: found[name][0]["psnr_hidden"])
    shown = [*rivals[-1:], *(name for name in found if name == OURS)]
    tiles = [(f"{name}: {found[name][0]['psnr_hidden']:.2f} dB", found[name][1]) for name in shown]
    return [(picture, part.truth), (mask, marked(part.truth, part.known)), *tiles]


def prepare() -> Callable[[], Row]:
    part = cell("china", SPEED_MASKS[0])
    return lambda: timed(lambda: ours(part.observed, part.known))


CASES = [Case(SPEED_MASKS[0], f"china, {SIDE} × {SIDE}", OURS, prepare)]

PARTS = {"quality": quality, "speed": speed, "memory": memory}


def run() -> Iterator[Row]:
    for name, part in PARTS.items():
        yield from or_skipped(part, objective=name)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.pictures", description=__doc__)
    parser.add_argument("--part", choices=PARTS, default="quality")
    parser.add_argument("--pictures", nargs="+", choices=PICTURES, default=list(PICTURES), metavar="NAME")
    parser.add_argument("--masks", nargs="+", choices=MASKS, default=list(MASKS), metavar="NAME")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of the masks ({SEED})")
    parser.add_argument("--output", type=Path, metavar="FILE.json", help="write the raw numbers there")
    parser.add_argument("--sheet", type=Path, metavar="FILE.png", help="write pictures to look at; measure nothing")
    asked = parser.parse_args()
    if asked.sheet:
        return contact_sheet(asked.sheet, asked.pictures, asked.masks, asked.seed)
    chosen = (asked.pictures, asked.masks, asked.seed) if asked.part == "quality" else ()
    measured_rows = or_skipped(partial(PARTS[asked.part], *chosen), objective=asked.part)
    rows = [report.plain({"benchmark": "pictures", **found}) for found in measured_rows]
    found = {"metadata": report.metadata(), "rows": rows}
    if asked.output:
        report.save(asked.output, found)
    return table.show(found)


if __name__ == "__main__":
    main()
