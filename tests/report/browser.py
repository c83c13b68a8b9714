"""What a reader of a page sees: the places of all its texts at a given width, found by a browser without a window.

`look` loads pages and pictures into frames of one document and lets a script of that document write down what it finds. Pages run no script of their own,
so none is in the way.
"""
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

CHROMIUM = next((found for found in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if found), None)

SCRIPT = r"""
const round = v => Math.round(v * 10) / 10;

// The part of a rectangle that is not outside of what scrolls around it; null: nothing of it. `inside`: the reader can scroll to it.
function seen(rect, element, view) {
  let {left, top, right, bottom} = rect, inside = false, hidden = false;
  for (let e = element; e && e.nodeType === 1; e = e.parentElement) {
    const style = view.getComputedStyle(e);
    if (style.overflowX === 'visible' && style.overflowY === 'visible') continue;
    if (e === e.ownerDocument.documentElement || e === e.ownerDocument.body) continue;
    if (e.namespaceURI !== 'http://www.w3.org/1999/xhtml') continue;
    const r = e.getBoundingClientRect();
    const scrolls = [style.overflowX, style.overflowY].some(v => v === 'auto' || v === 'scroll');
    if (scrolls) inside = true;
    else if (left < r.left - 1 || right > r.right + 1 || top < r.top - 1 || bottom > r.bottom + 1) hidden = true;
    left = Math.max(left, r.left); top = Math.max(top, r.top); right = Math.min(right, r.right); bottom = Math.min(bottom, r.bottom);
    if (right - left < 0.5 || bottom - top < 0.5) return hidden ? {left, top, right: left, bottom: top, inside, hidden} : null;
  }
  return {left, top, right, bottom, inside, hidden};
}

function texts(doc) {
  const view = doc.defaultView, found = [];
  const walker = doc.createTreeWalker(doc.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const words = node.data.trim(), element = node.parentElement;
    if (!words || ['STYLE', 'SCRIPT', 'TITLE', 'title', 'style'].includes(element.tagName)) continue;
    if (!element.checkVisibility()) continue;  // in a fold that is closed, or behind another tab
    const svg = element.closest('svg'), range = doc.createRange();
    range.selectNodeContents(node);
    const rects = svg ? [element.getBoundingClientRect()] : [...range.getClientRects()];
    for (const rect of rects) {
      if (rect.width < 0.5 || rect.height < 0.5) continue;
      const box = seen(rect, element, view);
      if (!box) continue;
      let clipped = box.hidden;
      if (svg) {
        const frame = svg.getBoundingClientRect();
        if (rect.left < frame.left - 0.7 || rect.right > frame.right + 0.7 || rect.top < frame.top - 0.7 || rect.bottom > frame.bottom + 0.7) clipped = true;
      }
      if (!box.inside && (box.right > doc.documentElement.clientWidth + 1 || box.left < -1)) clipped = true;
      // A font's box is higher than its letters.
      const give = svg ? 0.12 * rect.height : 0.1 * rect.height;
      found.push({text: words.slice(0, 80), left: box.left, right: box.right, top: box.top + give, bottom: box.bottom - give, clipped});
    }
  }
  return found;
}

function overlaps(found, give) {
  const sorted = [...found].sort((a, b) => a.top - b.top), hits = [];
  for (let i = 0; i < sorted.length; ++i)
    for (let j = i + 1; j < sorted.length && sorted[j].top < sorted[i].bottom - give; ++j) {
      const a = sorted[i], b = sorted[j];
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > give && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > give)
        hits.push([a.text, b.text, round(Math.max(a.left, b.left)), round(b.top)]);
    }
  return hits;
}

function rows(doc) {
  return [...doc.querySelectorAll('table')].map(t => [...t.rows].map(r => [...r.cells].map(c => c.innerText.trim())));
}

addEventListener('load', () => {
  const out = [];
  for (const frame of document.querySelectorAll('iframe')) {
    const doc = frame.contentDocument;
    if (frame.dataset.press) { const e = doc.getElementById(frame.dataset.press); if (e) e.click(); }
    const found = texts(doc), svg = doc.querySelector('svg');
    const scale = svg && svg.viewBox.baseVal ? svg.getBoundingClientRect().width / (svg.viewBox.baseVal.width || 1) : 1;
    out.push({name: frame.name, count: found.length, clipped: found.filter(f => f.clipped).map(f => f.text), overlaps: overlaps(found, Math.min(1, 0.5 * scale + 0.2)),
              wider: doc.documentElement.scrollWidth - doc.documentElement.clientWidth, height: doc.documentElement.scrollHeight,
              scrolled: [...doc.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.innerText.slice(0, 60)), tables: rows(doc), text: doc.body.innerText, svgs: [...doc.querySelectorAll('svg')].map(s => [...s.querySelectorAll('text')].map(t => t.textContent))});
  }
  for (const frame of document.querySelectorAll('iframe')) frame.remove();
  const result = document.createElement('pre');
  result.id = 'result';
  result.textContent = JSON.stringify(out);
  document.body.append(result);
});
"""


def look(pages):
    """[(name, content, width, id to press or None)] -> {name: what was found}. Content is a page or an SVG document."""
    frames = []
    for name, content, width, press in pages:
        if content.lstrip().startswith("<svg"):
            # As in a README: never wider than the page.
            content = f"<!doctype html><style>body {{ margin: 0; }} svg {{ max-width: 100%; height: auto; display: block; }}</style><body>{content}</body>"
        frames.append(f'<iframe name="{html.escape(name, quote=True)}" data-press="{press or ""}" style="width: {width}px; height: 900px; border: none;" srcdoc="{html.escape(content, quote=True)}"></iframe>')
    document = f"<!doctype html><meta charset=utf-8><body>{''.join(frames)}<script>{SCRIPT}</script></body>"
    with tempfile.TemporaryDirectory(prefix="tilewright-browser-") as folder:
        file = pathlib.Path(folder) / "pages.html"
        file.write_text(document)
        done = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions", "--no-first-run", f"--user-data-dir={folder}/profile",
                               "--force-device-scale-factor=1", "--window-size=1400,1000", "--timeout=60000", "--dump-dom", file.as_uri()],
                              capture_output=True, text=True, timeout=180, env={**os.environ, "HOME": folder})
    found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.S)
    assert found, f"the browser said nothing: {done.stderr[-2000:]}"
    return {page["name"]: page for page in json.loads(html.unescape(found[1]))}


def problems(page):
    """What is wrong with the labels of a page that `look` found."""
    out = [f"clipped: {text!r}" for text in page["clipped"]]
    out += [f"overlap at ({x}, {y}): {a!r} and {b!r}" for a, b, x, y in page["overlaps"]]
    if page["wider"] > 1:
        out.append(f"the page is {page['wider']} pixels wider than its window")
    if not page["count"]:
        out.append("no text at all")
    return out
