"""Pages: self-contained HTML of sessions and reports, safe to open and to pass on."""
