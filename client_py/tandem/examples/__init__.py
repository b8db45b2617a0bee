"""Programs to copy, engines and trainers: `python -m tandem.examples` lists them."""
