//! A parsed pickle: nodes that refer to each other.

use std::borrow::Cow;

use super::problem::PickleLimits;

/// Index of a node in [`Pickle::nodes`].
pub type Id = u32;

#[derive(Debug)]
pub enum Node<'a> {
    None,
    Bool(bool),
    Int(i64),
    /// An integer beyond 64 bits, in decimal.
    Long(Cow<'a, str>),
    Float(f64),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    /// A list, tuple or set.
    Items(Vec<Id>),
    Map(Vec<(Id, Id)>),
    Object(Box<Object>),
}

/// A parsed pickle: nodes that refer to each other.
#[derive(Debug)]
pub struct Pickle<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) root: Id,
    pub(super) limits: PickleLimits,
    pub(super) bytes: usize,
}

/// A class or function, or the result of a call.
#[derive(Debug)]
pub struct Object {
    pub kind: ObjectKind,
    /// The argument for `__setstate__`.
    pub state: Option<Id>,
    /// Values that unpickling would append or add to the object.
    pub items: Vec<Id>,
    /// Pairs that unpickling would set in the object.
    pub pairs: Vec<(Id, Id)>,
}

#[derive(Debug)]
pub enum ObjectKind {
    /// A class or function. Both ids refer to text nodes.
    Global {
        module: Id,
        name: Id,
    },
    Call {
        function: Id,
        arguments: Id,
    },
}
