"""Where sessions are kept between processes, beside the log."""
