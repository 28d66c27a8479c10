"""The cases of the comparison, one file per family; a new family is one file and one word in this table."""

from case import Case
from cases import customised, installed, keywords, peers_api, peers_stdlib, stock

FAMILIES = (stock, installed, keywords, customised, peers_stdlib, peers_api)

CASES: dict[str, Case] = {case.name: case for family in FAMILIES for case in family.CASES}
