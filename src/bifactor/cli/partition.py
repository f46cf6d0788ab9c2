"""`bifactor partition`: write observations to disk in blocks, for data larger than memory."""

import time
from pathlib import Path
from typing import Any

import click

from bifactor.cli import monitor
from bifactor.cli.options import INPUT, force_option, json_option, text_names_option
from bifactor.cli.output import emit_json, interrupt_code, print_result, stderr, wants_json
from bifactor.data import BlockStore
from bifactor.data import partition as write_blocks
from bifactor.validation import pluralize

EXAMPLES = """\b
Examples:
  bifactor partition ratings/*.parquet -o blocks
  bifactor partition ratings.csv --row user --col item --value stars -o blocks --memory 512MB
  bifactor partition clicks.parquet --implicit -o blocks
"""


@click.command(epilog=EXAMPLES)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("-o", "--output", type=INPUT, required=True, help="Folder to write.")
@click.option(
    "--memory", default="2GB", show_default=True, help="Most memory for this command, and for a fit of the blocks."
)
@click.option("--row", metavar="COLUMN", help="Column with the names of rows: its name, or its number from 1.")
@click.option("--col", metavar="COLUMN", help="Column with the names of columns.")
@click.option("--value", metavar="COLUMN", help="Column with the values.")
@click.option("--weight", metavar="COLUMN", help="Column with weights; by default there are none.")
@click.option("--implicit", is_flag=True, help="The data are choices: pairs of a row and a column without a value.")
@text_names_option
@force_option
@json_option
def partition(sources: tuple[str, ...], output: Path, memory: str, implicit: bool, force: bool, **names: Any) -> None:
    """Write the observations in SOURCE to a folder, in blocks.

    SOURCE is one or more parquet files, a folder of them or a URL, or files of any other kind that `complete` reads.
    The data may be larger than memory: parquet and text are read in pieces, twice. If the command was interrupted,
    run it again to continue.
    """
    if implicit and names["value"] is not None:
        raise click.UsageError("--implicit is for pairs without values. Leave out --value or --implicit.")
    asked = {**names, "value": False if implicit else names["value"]}
    begun, source, seen = time.perf_counter(), sources[0] if len(sources) == 1 else list(sources), []
    try:
        with monitor.stages() as show:

            def told(what: str, done: int, total: int) -> None:
                seen.append(what)
                show(what, done, total)

            store = write_blocks(source, output, memory, **asked, force=force, progress=told)
    except KeyboardInterrupt:
        _stopped(output)
    else:
        _tell(store, output, time.perf_counter() - begun, new=bool(seen))


def _tell(store: BlockStore, output: Path, seconds: float, new: bool) -> None:
    m, n = store.shape
    size = sum(path.stat().st_size for path in store.folder.iterdir() if path.is_file())
    answer = {
        "folder": str(output),
        "read_as": store.origin.layout,
        "observations": store.size,
        "left_out": store.origin.missing,
        "rows": m,
        "columns": n,
        "blocks": len(store.parts),
        "blocks_of": "columns" if store.flipped else "rows",
        "dtype": str(store.dtype),
        "bytes": size,
        "bytes_per_observation": size / store.size,
        "seconds": seconds,
        "new": new,
    }
    left_out = f", {store.origin.missing:,} lines without a value left out" if store.origin.missing else ""
    lines = [
        ("read", store.origin.layout),
        ("observations", f"{store.size:,} of {pluralize(m, 'row')} and {pluralize(n, 'column')}{left_out}"),
        ("blocks", f"{len(store.parts):,} of {answer['blocks_of']}, {size / store.size:.2f} bytes per observation"),
    ]
    if new:
        lines.append(("time", f"{seconds:.1f} s, {store.size / seconds / 1e6:.2f} million observations per second"))
    lines.append(("written", f"{output}" if new else f"{output}, by an earlier run: nothing was left to do"))
    print_result(answer, lines)


def _stopped(output: Path) -> None:
    """Say that the work so far is kept."""
    words = f"Interrupted; the work so far is in {output}. Run the same command again to continue."
    if wants_json():
        emit_json({"error": words})
    else:
        stderr().print(f"Error: {words}")
    click.get_current_context().exit(interrupt_code())
