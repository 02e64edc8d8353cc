"""Evaluating scripts in a page with the bound on the page's side: a page can answer with gigabytes, and an answer that
has arrived takes memory of the whole process.

Only a number leaves the page, or a text that was measured in the same step. A page can replace the language's
functions, but not the length of a text or its characters. It may lie, but its lie is bounded.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from fairlead.scrape.fetch.fetcher import FetchFailed

TITLE_MAX_CHARS: Final = 500

# Returns JSON text; 1 where it is too long, 2 for a value that JSON does not have (undefined, a function). The script
# runs as Playwright itself would run it, but the value itself stays in the page.
_VALUE: Final = """async ([script, most]) => {
  let value = globalThis.eval(script);
  if (typeof value === 'function') value = value();
  value = await value;
  let left = most;
  const counted = (_, inner) => {
    left -= typeof inner === 'string' ? inner.length : 1;
    if (left < 0) throw new RangeError();
    return typeof inner === 'bigint' ? Number(inner) : inner;
  };
  let text;
  try {
    text = JSON.stringify(value, counted);
  } catch (error) {
    if (left < 0) return 1;
    throw error;
  }
  if (typeof text !== 'string') return 2;
  return text.length <= most ? text : 1;
}"""
# `function () {}` alone would be a statement without a name.
_IS_FUNCTION: Final = re.compile(r"(?:async\s+)?function[\s(*]")
# Open shadow roots become `template` elements, and frames of the page's own origin `srcdoc` attributes, in a copy that
# belongs to no window: nothing in it runs or loads. A page without either is written as it is.
_TEXT: Final = """most => {
  const PARTS_MAX = 200, DEPTH_MAX = 8;
  let parts = 0;
  const frame = each => {
    try {
      return each.localName === 'iframe' ? each.contentDocument?.documentElement : null;
    } catch { return null; }
  };
  const needsCopy = node => [...node.querySelectorAll('*')].some(each => each.shadowRoot || frame(each));
  const inert = document.implementation.createHTMLDocument('');
  const copy = (nodes, from, depth) => {
    const made = inert.createElement('div');
    for (const node of nodes) made.append(inert.importNode(node, true));
    const copies = made.querySelectorAll('*');
    const originals = from.querySelectorAll('*');
    const first = copies.length - originals.length;
    originals.forEach((each, at) => {
      if (parts >= PARTS_MAX || depth >= DEPTH_MAX) return;
      const document = frame(each);
      if (each.shadowRoot) {
        parts++;
        const template = inert.createElement('template');
        template.setAttribute('shadowrootmode', 'open');
        template.content.append(...copy(each.shadowRoot.childNodes, each.shadowRoot, depth + 1).childNodes);
        copies[first + at].prepend(template);
      } else if (document) {
        parts++;
        copies[first + at].setAttribute('srcdoc', copy([document], document, depth + 1).innerHTML);
      }
    });
    return made;
  };
  const element = document.documentElement;
  const root = !element ? '' : needsCopy(element) ? copy([element], element, 0).innerHTML : element.outerHTML;
  const doctype = document.doctype ? new XMLSerializer().serializeToString(document.doctype) : '';
  if (typeof root !== 'string' || typeof doctype !== 'string') return 2;
  return root.length + doctype.length <= most ? doctype + root : 1;
}"""
_TITLE: Final = """most => {
  const title = document.title;
  let text = '';
  if (typeof title === 'string')
    for (let at = 0; at < title.length && at < most; at++) text += title[at];
  return text;
}"""
_EXTENT: Final = """() => {
  const root = document.documentElement;
  return [+root.scrollWidth, +root.scrollHeight];
}"""


async def evaluate_script(page: Any, script: str, max_chars: int) -> Any:
    """The value of a caller's script, as JSON. `FetchFailed` for more than `max_chars`; also what Playwright raises."""
    script = script.strip()
    if _IS_FUNCTION.match(script):
        script = f"({script})"
    answer = await page.evaluate(_VALUE, [script, max_chars])
    if answer == 1:
        raise FetchFailed(f"The value is larger than {max_chars} characters.", code="too_large")
    return orjson.loads(answer) if isinstance(answer, str) else None


async def text_of(page: Any, max_chars: int) -> str:
    """The page's current HTML. Raises `FetchFailed` for more than `max_chars`."""
    answer = await page.evaluate(_TEXT, max_chars)
    if not isinstance(answer, str):
        raise FetchFailed(f"The page is larger than {max_chars} bytes.", code="too_large")
    return answer


async def title_of(page: Any) -> str:
    """The page's title, cut to `TITLE_MAX_CHARS`."""
    answer = await page.evaluate(_TITLE, TITLE_MAX_CHARS)
    return answer if isinstance(answer, str) else ""


async def evaluate_bounded(page: Any, function: str, argument: Any, max_chars: int) -> Any:
    """The value of `function`, our JavaScript, for the argument; None for more than `max_chars`. A page may have
    replaced what the function uses, so the value is not to be trusted.
    """
    bounded = f"""([argument, most]) => {{
      const text = JSON.stringify(({function})(argument));
      return typeof text === 'string' && text.length <= most ? text : 1;
    }}"""
    answer = await page.evaluate(bounded, [argument, max_chars])
    return orjson.loads(answer) if isinstance(answer, str) else None


async def extent_of(page: Any) -> tuple[float, float]:
    """Width and height of the whole page in pixels."""
    width, height = await page.evaluate(_EXTENT)
    return width, height
