"""Build as pyproject.toml says; fail if one of its data files is missing."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class CheckedBuild(build_py):
    """Copies modules and data files. Plain setuptools leaves out a missing data file silently."""

    def run(self) -> None:
        """Copy the files.

        Raises:
            SystemExit: if a file of `package-data` is missing.
        """
        for package, names in self.package_data.items():
            for path in (Path(self.get_package_dir(package), name) for name in names):
                if not path.is_file():
                    raise SystemExit(f"{path}: expected a file, as in pyproject.toml: get it again")
        # Else files of an earlier build, since removed, get into the wheel.
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


setup(cmdclass={"build_py": CheckedBuild})
