"""Reports as the commands show them, with the options of a view as keywords."""

from functools import partial

from sessionlog.analytics.block import BlockReport
from sessionlog.analytics.sessions import SessionList
from sessionlog.analytics.survey import SourceReport
from sessionlog.analytics.usage_row import UsageReport
from sessionlog.render import report as writers
from sessionlog.render.blocks import render_blocks
from sessionlog.render.sessions import render_sessions
from sessionlog.render.sources import render_sources
from sessionlog.render.usage import render_usage
from tests.analytics.week import NOW

DEFAULTS = {"tz": "UTC", "now": NOW, "width": 160}
LAYOUTS = {
    BlockReport: render_blocks,
    SessionList: render_sessions,
    SourceReport: render_sources,
    UsageReport: render_usage,
}


def view_of(options):
    """A view; what is not given is a wide terminal in UTC."""
    return writers.View(**DEFAULTS | options)


def show(report, *, tree=None, gaps=None, heatmap=None, **view):
    """The lines of the terminal view."""
    layout = LAYOUTS.get(type(report), writers.render_table)
    more = {
        name: value for name, value in {"tree": tree, "gaps": gaps, "heatmap": heatmap}.items() if value is not None
    }
    return partial(layout, **more)(report, view_of(view))


def markdown(report, **view):
    """The Markdown table."""
    return writers.render_markdown(report, view_of({"width": 0} | view))
