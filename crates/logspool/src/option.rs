//! Options that users give: one row each, with name, type, default, unit, range and meaning.
//!
//! Signatures, checks, stubs and reference pages come from these rows, in every language. A struct of options is
//! declared by [`options!`](crate::options), in the file of the part that reads it. A default outside its range does not
//! compile.

mod field;
mod row;

pub use field::{OptionField, next_field};
pub use logspool_record::definition::OptionValue;
pub use row::{OptionDefault, OptionError, OptionRange, OptionRow, OptionShape, meant, ordered};

/// A struct of options, declared by [`options!`](crate::options).
pub trait OptionTable: Sized {
    /// What the part does, for the reference page.
    const ABOUT: &'static str;
    /// Its options, in the order of the struct.
    const ROWS: &'static [OptionRow];

    /// The values in the order of the rows.
    fn values(&self) -> Vec<OptionValue>;

    /// Reads what [`OptionTable::values`] made, or values that were checked against the rows.
    ///
    /// # Errors
    ///
    /// Names the option that has another type, or a value that its type refuses.
    fn from_values(values: &[OptionValue]) -> Result<Self, OptionError>;
}

/// Declares a struct of options and its rows.
///
/// Each option is a documented field: `name: type`, then `as Path` where text is a path, then `["unit", least..=most]` for a
/// number, then `= Whole(0)` or another [`OptionDefault`]; one without a default has to be given. Ranges are literals
/// or constants in braces.
///
/// ```
/// logspool::options! {
///     /// Keeps records in a jar.
///     pub struct JarOptions {
///         /// Path of the jar.
///         pub path: String as Path,
///         /// Records that fit.
///         pub records: u32 ["records", 1..=1000] = Whole(10),
///     }
/// }
/// use logspool::option::OptionTable;
/// assert_eq!("records", JarOptions::ROWS[1].name);
/// ```
///
/// A default outside its range is an error of the compiler:
///
/// ```compile_fail
/// logspool::options! {
///     /// Keeps records in a jar.
///     pub struct JarOptions {
///         /// Records that fit.
///         pub records: u32 ["records", 1..=1000] = Whole(0),
///     }
/// }
/// ```
#[macro_export]
macro_rules! options {
    (
        $(#[doc = $about:literal])+
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                pub $field:ident: $type:ty $(as $shape:ident)?
                $([$unit:literal $(, $least:literal..=$most:tt)?])? $(= $default:ident $(($value:expr))?)?
            ),* $(,)?
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $type,)*
        }

        impl $crate::option::OptionTable for $name {
            const ABOUT: &'static str = concat!($($about, "\n"),+);
            const ROWS: &'static [$crate::option::OptionRow] = &[$($crate::option::OptionRow {
                name: stringify!($field),
                shape: $crate::options!(@shape $type $(, $shape)?),
                default: $crate::options!(@default $($default $(($value))?)?),
                unit: concat!("" $(, $unit)?),
                range: $crate::options!(@range $($($least, $most)?)?),
                meaning: concat!($($doc, "\n"),+),
            }),*];

            fn values(&self) -> Vec<$crate::option::OptionValue> {
                vec![$($crate::option::OptionField::to_value(&self.$field)),*]
            }

            fn from_values(
                values: &[$crate::option::OptionValue],
            ) -> Result<Self, $crate::option::OptionError> {
                #[allow(unused_variables, unused_mut, reason = "a struct may have no options")]
                let mut values = values.iter();
                Ok(Self { $($field: $crate::option::next_field(stringify!($field), &mut values)?),* })
            }
        }

        const _: () = $crate::option::OptionRow::check_all(<$name as $crate::option::OptionTable>::ROWS);
    };
    (@shape $type:ty) => { <$type as $crate::option::OptionField>::SHAPE };
    (@shape $type:ty, $shape:ident) => { $crate::option::OptionShape::$shape };
    (@default) => { $crate::option::OptionDefault::Required };
    (@default $default:ident $(($value:expr))?) => { $crate::option::OptionDefault::$default $(($value))? };
    (@range) => { $crate::option::OptionRange::Any };
    (@range $least:literal, $most:tt) => { $crate::option::OptionRange::Whole($least, $most as i128) };
}
