"""Which files make the documentation's site? Those of the repository, where they are, so that one
link serves there and on the site. Hooks of mkdocs (mkdocs.yml)."""

import re
from pathlib import Path

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]


def on_files(files, config):
    """The theme's own files, the pages of the repository, and their pictures."""
    paths = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/*.png")]
    paths += [*ROOT.glob("config/*.md"), *ROOT.glob("envs/*.md")]
    paths += [ROOT / "resources/demo/README.md", ROOT / "CITATION.cff"]
    where = str(ROOT), config.site_dir, config.use_directory_urls
    theirs = [file for file in files if file.src_dir != config.docs_dir]
    return Files([*theirs, *(File(str(path.relative_to(ROOT)), *where) for path in paths)])


def on_page_markdown(markdown, **_):
    """Without the README's badges, which point to the repository's own pages."""
    return re.sub(r"^\[?!\[.*(badge).*\n", "", markdown, flags=re.MULTILINE)
