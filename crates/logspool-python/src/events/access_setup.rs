//! How a gunicorn logger was set up to write access lines.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). The format and the logger that takes the lines follow from a dozen
//! attributes and settings. They are read once. Afterwards the numbers of the last changes of their dicts are compared.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::events::access_format::KnownFormat;
use crate::interpreter::change_number::ChangeNumber;
use crate::interpreter::object::{self, Object, Owned};

/// What a logger was set up to do, valid while nothing has changed from which it was read.
pub struct AccessSetup {
    /// The dicts from which the setup was read. The first one is the `__dict__` of the logger.
    pub read: Vec<UnchangedDict>,
    /// The format of the lines.
    pub format: Arc<KnownFormat>,
    /// The logger that takes the lines.
    pub target: Owned,
}

impl AccessSetup {
    /// True if a logger with these attributes is set up in the same way.
    pub fn holds(&self, attributes: Object<'_, '_>) -> bool {
        self.read.first().is_some_and(|first| first.dict.as_ptr() == attributes.as_ptr())
            && self.read.iter().all(|dict| dict.holds(attributes.py()))
    }
}

/// A dict that was read, with the object whose `__dict__` it is.
pub struct UnchangedDict {
    /// The object with its class; `None` for a dict that is no `__dict__`, or whose object is looked up anew.
    object: Option<(Owned, usize)>,
    dict: Owned,
    number: Option<(ChangeNumber, u64)>,
}

impl UnchangedDict {
    /// A dict, as it is now.
    pub fn of(dict: Object<'_, '_>) -> Self {
        let number = dict.cast::<PyDict>().ok().and_then(|dict| ChangeNumber::of(&dict));
        Self { object: None, dict: Owned::of(&dict), number: number.map(|number| (number, number.now())) }
    }

    /// The `__dict__` of an object, as both are now.
    pub fn of_object(object: Object<'_, '_>, dict: Object<'_, '_>) -> Self {
        Self { object: Some((Owned::of(&object), object::class_of(object) as usize)), ..Self::of(dict) }
    }

    /// True if the dict has not changed, and still belongs to the object.
    fn holds(&self, py: Python<'_>) -> bool {
        self.number.is_some_and(|(number, seen)| number.now() == seen)
            && self.object.as_ref().is_none_or(|(object, class)| {
                let object = object.bind(py);
                object::class_of(object) as usize == *class
                    && object::own_attributes(object).is_ok_and(|own| own.as_ptr() == self.dict.as_ptr())
            })
    }
}
