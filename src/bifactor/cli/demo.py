"""`bifactor demo`: a photograph completed from a third of its pixels."""

import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from bifactor.arrays import Array
from bifactor.cli.look import code_of, tell, wants_json
from bifactor.cli.options import Within, json_option
from bifactor.estimators.displays.drawing import matplotlib_or_advice
from bifactor.losses import Squared
from bifactor.operators import Entries
from bifactor.problems.problem import Problem
from bifactor.running.files import require_writable
from bifactor.running.places import new_file
from bifactor.running.solve import solve
from bifactor.tables.pictures import LUMA, pillow_or_advice, psnr
from bifactor.words import counted

HEIGHT = 427
"""Of the photograph, in pixels, which are fewer than it has from left to right."""

PICTURES = (".png", ".jpg", ".jpeg", ".pdf", ".svg", ".webp")


@click.command()
@click.option("--rank", default=20, show_default=True, type=click.IntRange(1, HEIGHT), help="Of the recovered picture.")
@click.option(
    "--observed", default=0.35, show_default=True, type=Within(0, 1, min_open=True), help="Share of pixels kept."
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Which pixels are kept.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), default="demo.png", show_default=True)
@json_option
def demo(rank: int, observed: float, seed: int, output: Path) -> None:
    """Complete a photograph from some of its pixels and write original | observed | recovered."""
    if output.suffix.lower() not in PICTURES:
        raise click.BadParameter(f"{output} should end in one of {', '.join(PICTURES)}.", param_hint="--output")
    require_writable(output)
    matplotlib_or_advice()
    picture = _photograph()
    mask = np.random.default_rng(seed).random(picture.shape) < observed
    problem = Problem(Squared(), *Entries.from_dense(picture, mask))
    started = time.perf_counter()
    result = solve(problem, rank, rng=seed, max_iter=1000, tol=1e-4, progress=not wants_json())
    seconds = time.perf_counter() - started
    recovered = np.clip(result.matrix(), 0, 1)

    _write(output, picture, np.where(mask, picture, np.nan), recovered)
    height, width = picture.shape
    best = psnr(_truncated(picture, rank), picture)
    answer: dict[str, Any] = {"width": width, "height": height, "observed": float(mask.mean()), "rank": rank}
    answer |= {"psnr": psnr(recovered, picture), "psnr_of_rank": best, "iterations": result.n_iter}
    answer |= {"seconds": seconds, "status": result.status.name, "output": str(output)}
    lines = [
        ("picture", f"{width}×{height} pixels, {mask.mean():.0%} observed"),
        ("PSNR", f"{answer['psnr']:.2f} dB; of the whole picture cut to rank {rank}, {best:.2f} dB"),
        ("run", f"{result.status} ({counted(result.n_iter, 'iteration')}, {seconds:.1f} s)"),
        ("written", f"{output}: original | observed | recovered"),
    ]
    tell(answer, lines, code_of(result.status))


def _photograph() -> Array:
    """scikit-learn's `china.jpg` in grey, values in [0, 1]."""
    pillow_or_advice()
    from sklearn.datasets import load_sample_image

    return load_sample_image("china.jpg") @ LUMA / 255


def _truncated(picture: Array, rank: int) -> Array:
    A, s, B = np.linalg.svd(picture, full_matrices=False)
    return (A[:, :rank] * s[:rank]) @ B[:rank]


def _write(output: Path, *pictures: Array) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(pictures), figsize=(15, 3.6), layout="constrained")
    grey = matplotlib.colormaps["gray"].with_extremes(bad="#5b7db1")
    for axis, picture, title in zip(axes, pictures, ("original", "observed", "recovered"), strict=True):
        axis.imshow(picture, cmap=grey, vmin=0, vmax=1)
        axis.set_title(title)
        axis.axis("off")
    with new_file(output, force=True) as temporary:
        figure.savefig(temporary, dpi=90, format=output.suffix.lower().removeprefix("."))
    plt.close(figure)
