"""Rows: attributes of loggers, their lists of handlers and filters."""

from differential.staging import NATIVE, STOCK, UNSAID, note
from differential.table.cases import EVERY_KIND, ONE_OF_EACH, named_row, row

# Logger attributes, by setter and assigned
for _owner in ("log", "parent", "root"):

    def _set_level(case, owner=_owner):
        getattr(case, owner).setLevel(case.logging.ERROR)

    def _assign_level(case, owner=_owner):
        getattr(case, owner).level = case.logging.ERROR

    def _assign_level_and_clear(case, owner=_owner):
        getattr(case, owner).level = case.logging.ERROR
        case.log._cache.clear()

    def _not_propagating(case, owner=_owner):
        getattr(case, owner).propagate = False

    def _disabled(case, owner=_owner):
        getattr(case, owner).disabled = True

    def _inherit(case):
        case.log.setLevel(case.logging.NOTSET)
        case.root.setLevel(case.logging.DEBUG)

    _prepare = None if _owner == "log" else _inherit
    named_row(f"{_owner}_set_level", _set_level, NATIVE, prepare=_prepare)
    named_row(f"{_owner}_level_assigned", _assign_level, NATIVE, prepare=_prepare)
    named_row(f"{_owner}_level_assigned_and_cache_cleared", _assign_level_and_clear, NATIVE, prepare=_prepare)
    named_row(f"{_owner}_propagate_assigned", _not_propagating, NATIVE)
    named_row(f"{_owner}_disabled_assigned", _disabled, UNSAID if _owner == "log" else NATIVE)


@row(UNSAID)
def log_level_above_all(case):
    case.log.setLevel(1000)


@row(NATIVE)
def log_level_back_to_notset(case):
    case.log.setLevel(case.logging.NOTSET)


@row(NATIVE)
def log_parent_assigned(case):
    case.log.parent = case.root


@row(UNSAID)
def log_parent_none(case):
    case.log.parent = None


@row(NATIVE)
def log_name_assigned(case):
    case.log.name = "renamed"


@row(STOCK)
def log_class_assigned(case):
    class Loud(case.logging.Logger):
        def makeRecord(self, *args, **keywords):
            record = super().makeRecord(*args, **keywords)
            record.msg = f"LOUD {record.msg}"
            return record

    case.log.__class__ = Loud


@row(NATIVE)
def log_manager_assigned(case):
    manager = case.logging.Manager(case.root)
    manager.disable = case.logging.WARNING
    case.log.manager = manager


# Lists of handlers
def _handlers_assigned(case, owner):
    owner.handlers = [case.other]


def _handlers_append(case, owner):
    owner.handlers.append(case.other)


def _handlers_clear(case, owner):
    owner.handlers.clear()


def _handlers_slice_assigned(case, owner):
    owner.handlers[:] = [case.other]


def _handlers_first_assigned(case, owner):
    owner.handlers[0] = case.other


def _handlers_insert(case, owner):
    owner.handlers.insert(0, case.other)


def _handlers_remove(case, owner):
    owner.handlers.remove(owner.handlers[0])


def _handlers_pop(case, owner):
    owner.handlers.pop()


def _handlers_extend(case, owner):
    owner.handlers.extend([case.other, case.other])


def _handlers_plus_equals(case, owner):
    owner.handlers += [case.other]


def _handlers_times_equals(case, owner):
    owner.handlers *= 2


def _handlers_deleted_first(case, owner):
    del owner.handlers[0]


def _handlers_deleted_slice(case, owner):
    del owner.handlers[:]


def _add_handler(case, owner):
    owner.addHandler(case.other)


def _remove_handler(case, owner):
    owner.removeHandler(owner.handlers[0])


def _handlers_list_kept_and_changed_later(case, owner):
    handlers = owner.handlers
    owner.info("between")
    handlers.append(case.other)


_HANDLER_LIST_CHANGES = (
    _handlers_assigned,
    _handlers_append,
    _handlers_clear,
    _handlers_slice_assigned,
    _handlers_first_assigned,
    _handlers_insert,
    _handlers_remove,
    _handlers_pop,
    _handlers_extend,
    _handlers_plus_equals,
    _handlers_times_equals,
    _handlers_deleted_first,
    _handlers_deleted_slice,
    _add_handler,
    _remove_handler,
    _handlers_list_kept_and_changed_later,
)
for _owner in ("log", "parent", "root"):
    for _change in _HANDLER_LIST_CHANGES:

        def _on_owner(case, owner=_owner, change=_change):
            change(case, getattr(case, owner))

        # A record that reaches no handler of the log itself still reaches the handlers of its ancestors: the call stays
        # native.
        named_row(
            f"{_owner}{_change.__name__}", _on_owner, NATIVE, kinds=EVERY_KIND if _owner == "log" else ONE_OF_EACH
        )


@row(STOCK)
def handler_of_an_unknown_class_appended(case):
    class Noting(case.logging.Handler):
        def emit(self, record):
            note(f"{record.levelname} {record.msg!r} {record.args!r} {record.getMessage()}")

    case.log.handlers.append(Noting())


# Lists of filters
def _reject_errors(record):
    return record.levelno != 40


class _Rejecting:
    def filter(self, record):
        return record.levelno < 30


def _filter_function(case, owner):
    owner.addFilter(_reject_errors)


def _filter_object(case, owner):
    owner.filters.append(_Rejecting())


def _filter_by_name(case, owner):
    owner.filters.append(case.logging.Filter("app.db.deeper"))


def _filters_assigned(case, owner):
    owner.filters = [_reject_errors]


def _filters_slice_assigned(case, owner):
    owner.filters[:] = [_reject_errors]


def _filters_plus_equals(case, owner):
    owner.filters += [_reject_errors]


def _filter_that_changes_the_record(case, owner):
    def change(record):
        record.msg = f"changed {record.msg}"
        record.levelname = record.levelname.lower()
        return True

    owner.addFilter(change)


def _filters_of(case):
    return {"log": case.log, "parent": case.parent, "handler": case.handler}


for _owner in ("log", "parent", "handler"):
    for _change in (
        _filter_function,
        _filter_object,
        _filter_by_name,
        _filters_assigned,
        _filters_slice_assigned,
        _filters_plus_equals,
        _filter_that_changes_the_record,
    ):

        def _on_owner(case, owner=_owner, change=_change):
            change(case, _filters_of(case)[owner])

        # A filter of an ancestor is never called. A filter by name gives one answer for all records of a handler.
        _is_decided = _owner == "parent" or (_owner == "handler" and _change is _filter_by_name)
        named_row(
            f"{_owner}{_change.__name__}",
            _on_owner,
            NATIVE if _is_decided else STOCK,
            kinds=EVERY_KIND if _owner == "handler" else ONE_OF_EACH,
        )

for _owner in ("log", "handler"):

    def _with_filter(case, owner=_owner):
        _filters_of(case)[owner].addFilter(_reject_errors)

    def _filters_cleared(case, owner=_owner):
        _filters_of(case)[owner].filters.clear()

    def _filters_first_assigned(case, owner=_owner):
        _filters_of(case)[owner].filters[0] = _Rejecting()

    def _filters_emptied(case, owner=_owner):
        _filters_of(case)[owner].filters = []

    def _remove_filter(case, owner=_owner):
        _filters_of(case)[owner].removeFilter(_reject_errors)

    for _name, _change, _path in (
        ("filters_clear", _filters_cleared, NATIVE),
        ("filters_first_assigned", _filters_first_assigned, STOCK),
        ("filters_assigned_empty", _filters_emptied, NATIVE),
        ("remove_filter", _remove_filter, NATIVE),
    ):
        named_row(f"{_owner}_{_name}", _change, _path, warm_path=STOCK, prepare=_with_filter, kinds=ONE_OF_EACH)


@row(STOCK, since=(3, 12), kinds=ONE_OF_EACH)
def filter_that_returns_another_record(case):
    def replace(record):
        return case.logging.makeLogRecord({**vars(record), "msg": "replaced", "args": ()})

    case.handler.addFilter(replace)


@row(STOCK, kinds=ONE_OF_EACH)
def filter_with_its_name_changed_later(case):
    found = case.logging.Filter("app")
    case.log.addFilter(found)
    case.log.info("passes")
    found.name, found.nlen = "elsewhere", len("elsewhere")
