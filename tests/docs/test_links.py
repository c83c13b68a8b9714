"""Relative links of the documentation lead somewhere, anchors included."""
import os
import re

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = ["README.md", "HACKING.md"] + sorted(
    os.path.relpath(os.path.join(folder, name), ROOT) for folder, _, names in os.walk(os.path.join(ROOT, "docs")) for name in names if name.endswith(".md"))


def anchors(path):
    with open(path) as f:
        heads = re.findall(r"^#+ (.*)$", f.read(), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    with open(os.path.join(ROOT, page)) as f:
        text = re.sub(r"^```.*?^```$", "", f.read(), flags=re.S | re.M)
    text = re.sub(r"`[^`\n]*`", "", text)
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        path = os.path.normpath(os.path.join(ROOT, os.path.dirname(page), file)) if file else os.path.join(ROOT, page)
        if not os.path.exists(path) or (anchor and anchor not in anchors(path)):
            broken.append(link)
    assert not broken
