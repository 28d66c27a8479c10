//! The attributes that every `LogRecord` has, and where they usually are in its `__dict__`.
//!
//! Pipeline stage: *capture*, on the stock path (see ARCHITECTURE.md). `LogRecord.__init__` sets the attributes of all
//! records in the same order.

use crate::interpreter::dict::{self, UsualPosition};
use crate::interpreter::names::names;
use crate::interpreter::object::{Object, Owned};

macro_rules! attributes {
    ($($attribute:ident = $name:ident,)*) => {
        /// An attribute that every `LogRecord` has.
        #[derive(Debug, Clone, Copy)]
        pub enum Attribute {
            $(
                #[doc = concat!("The attribute named `", stringify!($name), "` in `Names`.")]
                $attribute,
            )*
        }

        /// The position of each attribute in the `__dict__` of a record.
        static POSITIONS: [UsualPosition; [$(Attribute::$attribute,)*].len()] =
            [const { UsualPosition::new() }; [$(Attribute::$attribute,)*].len()];

        impl Attribute {
            /// The name.
            #[inline]
            pub fn name(self) -> &'static Owned {
                match self {
                    $(Self::$attribute => &names().$name,)*
                }
            }
        }
    };
}

attributes! {
    Name = name,
    Message = msg,
    Arguments = args,
    LevelName = levelname,
    LevelNumber = levelno,
    Path = pathname,
    File = filename,
    Module = module,
    Exception = exc_info,
    ExceptionText = exc_text,
    Stack = stack_info,
    Line = lineno,
    Function = func_name,
    Created = created,
    Milliseconds = msecs,
    Thread = thread,
    ThreadName = thread_name,
    ProcessName = process_name,
    Process = process,
    Task = task_name,
}

impl Attribute {
    /// The value of the attribute in the `__dict__` of a record.
    #[inline]
    pub fn of(self, own: Object<'_, '_>) -> Option<Owned> {
        dict::get_at(own, self.name(), &POSITIONS[self as usize])
    }

    /// True if the attribute is the object at this address.
    #[inline]
    pub fn is_at(self, own: Object<'_, '_>, address: usize) -> bool {
        self.of(own).is_some_and(|found| found.as_ptr() as usize == address)
    }
}
