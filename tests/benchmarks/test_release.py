"""Tests of the release programs: their checks fail when they should."""

import re
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from processes import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import release_build
import release_check
from release_build import absolute
from release_check import FailedError, Paths

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HOME = "https://forge.example/a/b"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    (tmp_path / "dist").mkdir()
    (tmp_path / "work").mkdir()
    return Paths(tmp_path / "work", tmp_path / "dist", tmp_path / "tools", None)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the files that contain version and address, as if released."""
    folder = tmp_path / "project"
    (folder / "tokaido_env").mkdir(parents=True)
    names = "pyproject.toml", "CITATION.cff", "croissant.json", "tokaido_env/__init__.py"
    for name in (*names, "README.md"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    date = "2030-01-31"
    cited = (folder / "CITATION.cff").read_text(encoding="utf-8")
    dated = re.sub(r"^date-released: .*\n", "", cited, flags=re.MULTILINE)
    (folder / "CITATION.cff").write_text(f"{dated}date-released: {date}\n", encoding="utf-8")
    (folder / "CHANGELOG.md").write_text(f"# Changelog\n\n## {PROJECT['version']} ({date})\n")
    for module in (release_build, release_check):
        monkeypatch.setattr(module, "ROOT", folder)
    return folder


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


# Versions and addresses


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("tokaido_env/__init__.py", '__version__ = "', '__version__ = "9'),
        ("CITATION.cff", "\nversion: ", "\nversion: 9"),
        ("CHANGELOG.md", " (20", " (19"),
    ],
)
def test_versions__names_the_file_with_another_version(
    project: Path, paths: Paths, name: str, old: str, new: str
) -> None:
    assert release_check.versions(paths).startswith(PROJECT["version"])
    edit(project / name, old, new)
    with pytest.raises(FailedError, match=re.escape(name)):
        release_check.versions(paths)


def test_versions__refuses_a_tag_of_another_version(project: Path, paths: Paths) -> None:
    paths.tag = "v9.9.9"
    with pytest.raises(FailedError, match=r"the tag has 9\.9\.9"):
        release_check.versions(paths)


def test_addresses__refuses_an_address_of_another_repository(
    project: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = PROJECT["urls"]["Repository"]
    server, _, name = home.rpartition("/")
    server, _, owner = server.rpartition("/")
    monkeypatch.setenv("GITHUB_SERVER_URL", server)
    monkeypatch.setenv("GITHUB_REPOSITORY", f"{owner}/{name}")
    assert release_check.addresses(paths) == home
    monkeypatch.setenv("GITHUB_REPOSITORY", f"{owner}/another")
    with pytest.raises(FailedError, match="confirm the address"):
        release_check.addresses(paths)
    edit(project / "CITATION.cff", f"repository-code: {home}", f"repository-code: {HOME}")
    with pytest.raises(FailedError, match="to be confirmed: CITATION"):
        release_check.addresses(paths)


def test_classifiers__list_every_supported_python() -> None:
    prefix = "Programming Language :: Python :: 3."
    listed = {c.removeprefix(prefix) for c in PROJECT["classifiers"] if c.startswith(prefix)}
    allowed = Requirement(f"python{PROJECT['requires-python']}").specifier
    assert listed == {str(minor) for minor in range(50) if allowed.contains(f"3.{minor}.1")}
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    (row,) = re.findall(r'os: .*\n\s+python: \["(.*)"\]', workflow)
    assert {version.removeprefix("3.") for version in row.split('", "')} == listed


def test_oldest_constraints__are_the_lower_bounds() -> None:
    lines = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    oldest = dict(line.split("==") for line in lines if "==" in line and line[0] != "#")
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    bounds: dict[str, set[Version]] = {}
    for wanted in (Requirement(text) for group in groups for text in group):
        lower = [Version(s.version) for s in wanted.specifier if s.operator == ">="]
        bounds.setdefault(wanted.name, set()).update(lower)
    required = {Requirement(text).name for text in PROJECT["dependencies"]}
    assert required < set(oldest)
    assert set(oldest) - set(bounds) == {"pyparsing"}  # Matplotlib's
    for name in set(oldest) & set(bounds):
        assert bounds[name] == {Version(oldest[name])}, name


# Packages


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](docs/a.md#b)", f"[a]({HOME}/blob/v1.0/docs/a.md#b)"),
        ("![a](docs/a.svg)", f"![a]({HOME}/raw/v1.0/docs/a.svg)"),
        ('<img src="a.png" alt="b">', f'<img src="{HOME}/raw/v1.0/a.png" alt="b">'),
        *((same, same) for same in ("[a](#b)", "[a](https://x.example/y)", "a.md", "f(docs/a.md)")),
    ],
)
def test_absolute__rewrites_relative_links(text: str, expected: str) -> None:
    assert absolute(text, HOME, "1.0") == expected


@pytest.mark.slow
def test_sdist__builds_the_same_wheel(paths: Paths) -> None:
    """The README has absolute links in both; neither contains tests."""
    assert release_check.packages(paths)
    assert release_check.sdist(paths) == "the same wheel"
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    with tarfile.open(paths.one("*.tar.gz")) as archive:
        names = archive.getnames()
        (readme,) = (name for name in names if name.endswith("/README.md"))
        content = archive.extractfile(readme)
        assert content is not None
        home, version = PROJECT["urls"]["Repository"], PROJECT["version"]
        assert content.read().decode() == absolute(text, home, version)
    assert not [name for name in names if "/tests" in name]
    assert f"tokaido_env-{PROJECT['version']}/CITATION.cff" in names
