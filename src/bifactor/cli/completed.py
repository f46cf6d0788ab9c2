"""The summary that `bifactor complete` prints."""

from pathlib import Path
from typing import Any

from bifactor.cli.look import notes
from bifactor.cli.memory import memory_in_words
from bifactor.models.card import noise_in_words
from bifactor.models.clipping import in_words as spoken_range
from bifactor.models.clipping import restored_range
from bifactor.models.scores import spoken
from bifactor.models.store import REPORT
from bifactor.validation import counted


def summary(card: dict[str, Any], output: Path) -> list[tuple[str, str]]:
    data, fit, timings = card["data"], card["fit"], card["timings"]
    return [
        ("data", f"{data['file']}, {data['layout']}"),
        ("", f"{counted(data['entries'], 'entry')} of {data['rows']:,} × {data['cols']:,}"),
        ("fit", f"rank {fit['rank']}, {_shrinkage(fit)}, {counted(fit['iterations'], 'iteration')}"),
        *_noise(fit),
        *_clipped(fit),
        ("status", fit["sentence"]),
        *((name, spoken(score)) for name, score in card["scores"].items()),
        *notes(card["notes"]),
        ("memory", memory_in_words(card)),
        ("time", f"{timings['all']:.1f} s, of which reading took {timings['reading']:.1f} s"),
        ("written", written(output)),
    ]


def written(output: Path) -> str:
    """The folder of a fit, and its report if there is one."""
    return f"{output} (look at {output / REPORT})" if (output / REPORT).exists() else str(output)


def _shrinkage(fit: dict[str, Any]) -> str:
    return "with error bars" if fit["alpha"] is None else f"ridge {fit['alpha']:.4g}"


def _noise(fit: dict[str, Any]) -> list[tuple[str, str]]:
    """For a fit with error bars: the noise, and how many components are not practically zero."""
    told = fit["noise"]
    if told is None:
        return []
    return [("noise", f"{noise_in_words(told)}; {told['living']} of {counted(fit['rank'], 'component')} in use")]


def _clipped(fit: dict[str, Any]) -> list[tuple[str, str]]:
    limits = restored_range(fit["clip"])
    return [] if limits is None else [("clipped", f"predictions are {spoken_range(limits)}")]
