"""What the findings of experiments are written as: a page to read, and files to work with."""

from bifactor_reproduce.report.section import Section
from bifactor_reproduce.report.write import write_report

__all__ = ["Section", "write_report"]
