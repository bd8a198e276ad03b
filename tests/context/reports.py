"""Reports on the context of a session that a path names."""

from sessionlog.context import cache_misses as misses
from sessionlog.context.xray import report
from sessionlog.sources.find import log_at
from sessionlog.sources.protocol import Log


def xray(target, session=None, **options):
    """Report on a log, or on the file that a path names."""
    return report.xray(_log(target), session, **options)


def cache_misses(target, **options):
    """Find the cache misses in the file that a path names."""
    return misses.cache_misses(_log(target), **options)


def _log(target):
    return target if isinstance(target, Log) else log_at(str(target))
