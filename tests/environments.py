"""Virtual environments of the tests' own, which see the packages of this one."""

import subprocess
import sys
from pathlib import Path

from tests.support import ROOT


def environment(folder: Path, modules: dict[str, str] | None = None) -> Path:
    """Make one in `folder`; its interpreter is returned. modules: name -> text of modules that it alone has."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    site.joinpath("shared.pth").write_text("\n".join([str(ROOT), *filter(None, sys.path)]), encoding="utf-8")
    for name, text in (modules or {}).items():
        site.joinpath(f"{name}.py").write_text(text, encoding="utf-8")
    return folder / "bin/python"
