"""The site: static pages from the same data as the commands, written by `python -m tools.site FOLDER`.

Plain Jinja2 rather than mkdocs-material or Sphinx: nearly every page is a view of data, of which those two know
nothing, while the few pages of prose need only a Markdown parser. Their themes also bring scripts and styles inside the
page, which a strict Content-Security-Policy forbids, and weigh more than the index may.

`source` reads the data, `failure`, `overview`, `commands` and `prose` turn it into what templates show, `machine`
writes the files for programs, `search` and `matcher` add what npm delivers, the search and `repros match` for the
browser, and `build` puts them in order.
"""
