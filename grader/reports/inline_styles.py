"""Inline styles for HTML fragments. Notebooks and other pages embed fragments, so the styles must suit any background.

Full pages use a style sheet instead, which has one class for each of these styles.
"""

_PILL = "display:inline-block;white-space:nowrap;border-radius:1em;padding:0 .6em;font-size:.85em;font-weight:600;"
_BOX = "margin:.4em 0;padding:.45em .75em;border-radius:4px;"
INLINE_STYLES = {
    "exercise": "margin:1em 0;font-family:system-ui,sans-serif;line-height:1.5;max-width:60em;overflow-x:auto",
    "exercise-head": "display:flex;flex-wrap:wrap;align-items:baseline;justify-content:space-between;margin:0 0 .5em",
    "exercise-title": "margin:0;font-size:1.2em",
    "exercise-score": "font-weight:700;white-space:nowrap",
    "results": "border-collapse:collapse;table-layout:auto;width:100%;color:inherit;font:inherit",
    "offscreen": "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap",
    "row": "background:transparent;border-top:1px solid rgba(128,128,128,.35)",
    "status": "text-align:left;vertical-align:top;padding:.5em .75em .5em 0;width:1%",
    "what": "text-align:left;vertical-align:top;padding:.5em .75em .5em 0",
    "worth": "text-align:right;vertical-align:top;padding:.5em 0;white-space:nowrap;width:1%",
    "pill passed": _PILL + "background:#d5f2dc;color:#0b5a23",
    "pill failed": _PILL + "background:#fde0dd;color:#9b1c13",
    "pill blocked": _PILL + "background:#e4e6ea;color:#454b54",
    "pill broken": _PILL + "background:#fdeec2;color:#6b4a00",
    "pill waiting": _PILL + "background:#fdeec2;color:#6b4a00",
    "tag": "font-size:.75em;opacity:.75;border:1px solid;border-radius:3px;padding:0 .35em;margin-left:.4em",
    "label": "font-weight:600",
    "reason": "margin:.25em 0",
    "where": "opacity:.7;white-space:nowrap",
    "hint": _BOX + "background:#fff4d6;color:#4a3500",
    "note": _BOX + "background:#e4e6ea;color:#2b3038",
    "pending-note": _BOX + "background:#fdeec2;color:#5c4000",
    "data": "display:grid;grid-template-columns:max-content 1fr;gap:.1em 1em;margin:.4em 0;font-size:.9em",
    "datum": "margin:0",
    "pictures": "display:flex;flex-wrap:wrap;gap:1em 2em;margin:.75em 0",
    "picture": "margin:0;min-width:0;max-width:100%;overflow-x:auto",
    "picture timeline": "margin:0;min-width:0;max-width:100%;overflow-x:auto",
    "ring": "margin:.75em 0",
    "picture-words": "contain:inline-size",  # text wraps at the picture's width, and does not widen the picture
    "picture-title": "font-size:.9em",
    "picture-caption": "font-size:.8em;opacity:.8",
    "holders": "font-size:.8em",
}
