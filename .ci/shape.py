"""The shape of the code base, counted: `python .ci/shape.py [FOLDER]`. For judgement; nothing here is a limit."""

import ast
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

IRREGULAR = "begun chosen done drawn found given held kept known left made met paid put read said seen sent spelt told"
PARTICIPLE = re.compile(rf"(.*_)?([a-z]{{2,}}ed|{IRREGULAR.replace(' ', '|')})(_.*)?")
SMALL = 60
ENGINE = "arrays executors kernels losses operators penalties problems inits steps solvers running"
CAPABILITIES = {
    "clicks": r"\bclicks\b|Clicks|ImplicitFeedback|Recommender",
    "side information": r"Sides\b|SideInformation|Featured|FeatureTable|user_features",
    "blocks": r"BlockStore|Partitioned|BlockSweeps",
    "posterior": r"\bPosterior\b|Variational|posterior",
}
"""Words that show that a file knows of a capability."""


def module_of(path: Path, source: Path) -> str:
    parts = (source.name, *path.relative_to(source).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(tree: ast.AST, modules: set[str]) -> set[str]:
    """The modules of the library that a file imports, lazily too."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            named = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= named & modules or {node.module} & modules
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & modules
    return found


def room(module: str) -> str:
    return module.partition(".")[2].partition(".")[0]


def shape(source: Path) -> dict[str, object]:
    paths = {module_of(path, source): path for path in sorted(source.rglob("*.py"))}
    texts = {module: path.read_text(encoding="utf-8") for module, path in paths.items()}
    trees = {module: ast.parse(text) for module, text in texts.items()}
    lines = {module: len(text.splitlines()) for module, text in texts.items()}
    importers: dict[str, set[str]] = defaultdict(set)
    for module, tree in trees.items():
        for other in imports_of(tree, set(paths)) - {module}:
            importers[other].add(module)
    plain = [module for module, path in paths.items() if path.name != "__init__.py"]
    small = [module for module in plain if lines[module] < SMALL and len(importers[module]) == 1]
    classes = Counter(node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    functions = [
        node.name
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and not any("property" in ast.unparse(d) for d in node.decorator_list)
    ]
    engine = [
        (module, other)
        for module, tree in trees.items()
        if room(module) == "cli"
        for other in imports_of(tree, set(paths))
        if room(other) in ENGINE.split()
    ]
    found: dict[str, object] = {
        "files": len(paths),
        "lines": sum(lines.values()),
        "lines of a module, median": sorted(lines[module] for module in plain)[len(plain) // 2],
        f"modules under {SMALL} lines with one importer": len(small),
        "class names used twice": sum(count > 1 for count in classes.values()),
        "functions named by a participle": sum(bool(PARTICIPLE.fullmatch(name.strip("_"))) for name in functions),
        "imports from cli to the engine": len(engine),
    }
    for name, words in CAPABILITIES.items():
        touched = [module for module, text in texts.items() if re.search(words, text)]
        rooms = {room(module) for module in touched} - {""}
        found[f"{name}: rooms, files"] = f"{len(rooms)}, {len(touched)}"
    return found


if __name__ == "__main__":
    home = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "src" / "bifactor"
    for name, value in shape(home).items():
        print(f"{name:45} {value:>8}" if isinstance(value, str) else f"{name:45} {value:>8,}")
