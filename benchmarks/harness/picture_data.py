"""Pictures from packages or from the data folder, and masks that hide some of their pixels.

Each picture is cut to 256 × 256 pixels at its centre, large photographs after a reduction by four. A mask is drawn with
numbers that depend on the seed and on the names of picture and mask only, so that a part of a run gives the same
numbers as the whole.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.harness import data
from benchmarks.harness.rows import Absent, library
from bifactor.applications.pictures.files import random_mask, read_picture, shrunk

SIDE = 256
SEGMENTS = 5
"""Of one scratch."""

TEXT = ("boats", "came", "back", "before", "the", "evening", "and", "nobody", "on", "pier", "had", "seen", "them", "so")


@dataclass(frozen=True)
class Picture:
    """A file of an installed package, or of the folder of data where `package` is empty."""

    package: str
    file: str
    new: bool = False
    """Whether no choice in the method was made, and no first table of it, with this picture."""
    reduced: int = 1

    @property
    def path(self) -> Path:
        if self.package:
            path = Path(library(self.package).__file__).parent / self.file
            advice = f"Install another version of {self.package}."
        else:
            path, advice = data.DATA / self.file, "Set BIFACTOR_DATA to the folder that holds it."
        if not path.exists():
            raise Absent(f"{self.file} is missing. {advice}", self.file)
        return path

    def pixels(self) -> np.ndarray:
        """All of it: height × width or height × width × 3 bytes."""
        library("PIL")
        values = read_picture(self.path).pixels
        return values[:, :, 0] if values.shape[2] == 1 else values

    def cut(self) -> np.ndarray:
        return means(centre(self.pixels(), SIDE * self.reduced, SIDE * self.reduced), self.reduced)


def centre(picture: np.ndarray, height: int, width: int) -> np.ndarray:
    """So many pixels at the centre, or as many as there are."""
    top, left = (max(have - want, 0) // 2 for have, want in zip(picture.shape, (height, width), strict=False))
    return picture[top : top + height, left : left + width]


def means(picture: np.ndarray, factor: int) -> np.ndarray:
    """Bytes nearest to the means of squares."""
    if factor == 1:
        return picture
    planes = [shrunk(plane, factor) for plane in np.moveaxis(np.atleast_3d(picture), 2, 0)]
    return np.rint(np.stack(planes, axis=2)).astype(np.uint8).reshape(*planes[0].shape, *picture.shape[2:])


def bundled(file: str, new: bool = False) -> Picture:
    return Picture("skimage", f"data/{file}", new)


def large(file: str, new: bool = False) -> Picture:
    return Picture("", f"photos-large/{file}", new, reduced=4)


PICTURES = {
    "astronaut": bundled("astronaut.png"),
    "chelsea": bundled("chelsea.png"),
    "coffee": bundled("coffee.png"),
    "rocket": bundled("rocket.jpg"),
    "camera": bundled("camera.png"),
    "brick": bundled("brick.png"),
    "grass": bundled("grass.png"),
    "text": bundled("text.png"),
    "page": bundled("page.png"),
    "moon": bundled("moon.png"),
    "coins": bundled("coins.png"),
    "motorcycle": bundled("motorcycle_left.png"),
    "hubble": bundled("hubble_deep_field.jpg"),
    "barbara": Picture("", "photos-small/barbara.png"),
    "boat": Picture("", "photos-small/boat.png"),
    "dragonfly": large("dragonfly_4224x3168.jpg"),
    "mountains": large("mountains_3264x2448.jpg"),
    "elephants": large("elephants-painting_5640x3172.jpg"),
    "china": Picture("sklearn", "datasets/images/china.jpg"),
    "gravel": bundled("gravel.png", new=True),
    "retina": bundled("retina.jpg", new=True),
    "immunohistochemistry": bundled("ihc.png", new=True),
    "cell": bundled("cell.png", new=True),
    "clock": bundled("clock_motion.png", new=True),
    "horse": bundled("horse.png", new=True),
    "logo": bundled("logo.png", new=True),
    "flower": Picture("sklearn", "datasets/images/flower.jpg", new=True),
    "sunset": large("sunset_4272x2848.jpg", new=True),
    "dandelion": large("dandelion_5312x2988.jpg", new=True),
    "bluemarble": large("bluemarble_5400x2700.jpg", new=True),
}

Shape = tuple[int, int]
Mask = Callable[[Shape, np.random.Generator], np.ndarray]
"""True where a pixel is known."""


def scattered(missing: float) -> Mask:
    """So large a share of the pixels, at random."""
    return lambda shape, rng: random_mask(shape, 1 - missing, int(rng.integers(2**32)))


def scratches(shape: Shape, rng: np.random.Generator, share: float = 0.03) -> np.ndarray:
    """Lines with bends, 2 or 3 pixels wide, until a share of the pixels lies under them."""
    known, length = np.ones(shape, bool), max(shape) / 6
    while True:
        at, turn, width = rng.random(2) * shape, rng.random() * 2 * np.pi, int(rng.integers(2, 4))
        for _ in range(SEGMENTS):
            turn += rng.normal(0, 0.5)
            there = at + length * np.array([np.sin(turn), np.cos(turn)])
            scratch(known, at, there, width)
            at = there
            if (~known).mean() >= share:
                return known


def scratch(known: np.ndarray, start: np.ndarray, end: np.ndarray, width: int) -> None:
    """Hide the pixels that a square covers on its way from one place to another."""
    places = np.rint(np.linspace(start, end, 2 * int(np.abs(end - start).max()) + 2)).astype(int)
    rows, cols = (places[:, None, :] + np.argwhere(np.ones((width, width)))).reshape(-1, 2).T
    inside = (rows >= 0) & (rows < known.shape[0]) & (cols >= 0) & (cols < known.shape[1])
    known[rows[inside], cols[inside]] = False


def words(shape: Shape, rng: np.random.Generator, share: float = 0.1, size: int = 20) -> np.ndarray:
    """Words on lines in random order, until a share of the pixels lies under them."""
    image, font = library("PIL.Image").new("1", shape[::-1]), library("PIL.ImageFont").load_default(size)
    draw = library("PIL.ImageDraw").Draw(image)
    for top in rng.permutation(np.arange(2, shape[0], size + 2)):
        left = -float(rng.random()) * size
        while left < shape[1]:
            word = f"{rng.choice(TEXT)} "
            draw.text((left, top), word, font=font, fill=1)
            left += draw.textlength(word, font=font)
            hidden = np.asarray(image)
            if hidden.mean() >= share:
                return ~hidden
    return ~np.asarray(image)


def blocks(shape: Shape, rng: np.random.Generator, share: float = 0.1, side: int = 16) -> np.ndarray:
    """Squares that do not touch each other, until a share of the pixels lies under them."""
    known = np.ones(shape, bool)
    while (~known).mean() < share:
        top, left = (int(rng.integers(length - side + 1)) for length in shape)
        if known[max(top - 1, 0) : top + side + 1, max(left - 1, 0) : left + side + 1].all():
            known[top : top + side, left : left + side] = False
    return known


def lines(shape: Shape, rng: np.random.Generator, share: float = 0.06) -> np.ndarray:
    """A share of the rows, and the same share of the columns."""
    known = np.ones(shape, bool)
    known[rng.choice(shape[0], round(share * shape[0]), replace=False)] = False
    known[:, rng.choice(shape[1], round(share * shape[1]), replace=False)] = False
    return known


MASKS: dict[str, Mask] = {
    **{f"{percent} % at random": scattered(percent / 100) for percent in (20, 50, 65, 80, 95)},
    "scratches": scratches,
    "words": words,
    "blocks": blocks,
    "lines": lines,
}


def known_pixels(mask: str, shape: Shape, seed: int, picture: str) -> np.ndarray:
    rng = np.random.default_rng([seed, *f"{picture}, {mask}".encode()])
    return MASKS[mask](shape, rng)
