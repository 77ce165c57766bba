#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""links.py SITE: every link of the site's pages leads to a page that is there, and to a place that the page has.

Pages of the reference are not read, which doxygen has checked, but links to them are followed.
"""
import html
import pathlib
import re
import sys
import urllib.parse

site = pathlib.Path(sys.argv[1])
places = {}


def places_of(page):
    if page not in places:
        places[page] = set(re.findall(r"\b(?:id|name)=\"?([^\"\s>]+)", page.read_text(errors="replace")))
    return places[page]


count, wrong = 0, []
for page in sorted(site.rglob("*.html")):
    if page.relative_to(site).parts[0] == "api" or page.name == "404.html":
        continue
    for link in re.findall(r"<(?:a|img)\b[^>]*?\b(?:href|src)=\"([^\"]*)\"", page.read_text()):
        link = html.unescape(link)
        if re.match(r"[a-z]+:", link):
            continue
        count += 1
        path, _, place = link.partition("#")
        target = (page.parent / urllib.parse.unquote(path)).resolve() if path else page
        if target.is_dir():
            target = target / "index.html"
        if not target.exists():
            wrong.append(f"{page.relative_to(site)}: {link} does not exist")
        elif place and target.suffix == ".html" and urllib.parse.unquote(place) not in places_of(target):
            wrong.append(f"{page.relative_to(site)}: {link} leads to no place of that page")
if wrong:
    sys.exit("\n".join(wrong))
print(f"{count} links lead somewhere")
