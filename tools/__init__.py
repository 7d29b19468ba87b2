"""What only this checkout needs: the site, generated pages, measurements. `repros` never imports it."""
