"""Tools of this checkout: the site, generated pages, measurements. `repros` never imports them."""
