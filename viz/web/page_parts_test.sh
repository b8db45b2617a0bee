#!/bin/bash
# The page's pure parts, by Node's own test runner.
exec node --test viz/web/page/page_parts_test.mjs
