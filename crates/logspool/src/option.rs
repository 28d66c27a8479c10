//! Options that users give. Each option is one row with its name, type, default, unit, range and meaning.
//!
//! Signatures, checks, stubs and reference pages come from these rows, in every language. [`options!`](crate::options)
//! declares a struct of options, in the file of the component that reads them. A default outside its range does not
//! compile.

use std::path::PathBuf;

mod field;
mod row;

pub use field::{FOR_EVER, OptionField, next_field};
pub use logspool_record::definition::OptionValue;
pub use row::{OptionDefault, OptionError, OptionRange, OptionRow, OptionShape, ordered, suggestion};

/// The path from the root. A path that the system cannot complete stays as it is: an empty one, or a relative one in a
/// folder that was removed.
pub fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// A struct of options, declared by [`options!`](crate::options).
pub trait OptionTable: Sized {
    /// What the component with these options does, for the reference page.
    const ABOUT: &'static str;
    /// The rows of the options, in the order of the struct's fields.
    const ROWS: &'static [OptionRow];

    /// The struct with every option at its default. `None` if the table has a required option.
    fn defaults() -> Option<Self> {
        let values: Option<Vec<_>> = Self::ROWS.iter().map(OptionRow::default_value).collect();
        Self::from_values(&values?).ok()
    }

    /// The values in the order of the rows.
    fn values(&self) -> Vec<OptionValue>;

    /// Makes the struct from values: those of [`OptionTable::values`], or values that were checked against the rows.
    ///
    /// # Errors
    ///
    /// The error names the option whose value has the wrong type, or whose value its type refuses.
    fn from_values(values: &[OptionValue]) -> Result<Self, OptionError>;
}

/// Declares a struct of options and its rows.
///
/// Each option is a documented field. It has the form `name: type`, then `as Path` if its text is a path, then its
/// range, then its default. The range is `["unit", minimum..=maximum]` for a number or `[seconds 0.5..=2.0]` for a
/// number of seconds. The default is `= Whole(0)` or another [`OptionDefault`]; an option without a default is
/// required. The upper end of a range is a literal or a constant in braces.
///
/// Fields after a `;` are not options: they have no row, and each has the value after its `=`.
///
/// ```
/// logspool::options! {
///     /// Keeps records in a jar.
///     pub struct JarOptions {
///         /// Path of the jar.
///         pub path: String as Path,
///         /// Records that fit.
///         pub records: u32 ["records", 1..=1000] = Whole(10),
///         /// How long the jar stays open.
///         pub open: std::time::Duration [seconds 0.5..=2.0] = Seconds(1.5),
///     }
/// }
/// use logspool::option::OptionTable;
/// assert_eq!("records", JarOptions::ROWS[1].name);
/// ```
///
/// A default outside its range is a compile error:
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
///
/// ```compile_fail
/// logspool::options! {
///     /// Keeps records in a jar.
///     pub struct JarOptions {
///         /// How long the jar stays open.
///         pub open: std::time::Duration [seconds 0.5..=2.0] = Seconds(2.5),
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
                $([$($bounds:tt)+])? $(= $default:ident $(($value:expr))?)?
            ),* $(,)?
            $(; $($(#[doc = $more_doc:literal])+ pub $more:ident: $more_type:ty = $more_value:expr),+ $(,)?)?
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $type,)*
            $($($(#[doc = $more_doc])+ pub $more: $more_type,)+)?
        }

        impl $crate::option::OptionTable for $name {
            const ABOUT: &'static str = concat!($($about, "\n"),+);
            const ROWS: &'static [$crate::option::OptionRow] = &[$($crate::option::OptionRow {
                name: stringify!($field),
                shape: $crate::options!(@shape $type $(, $shape)?),
                is_optional: <$type as $crate::option::OptionField>::IS_OPTIONAL,
                default: $crate::options!(@default $($default $(($value))?)?),
                unit: $crate::options!(@unit $($($bounds)+)?),
                range: $crate::options!(@range $($($bounds)+)?),
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
                Ok(Self {
                    $($field: $crate::option::next_field(stringify!($field), &mut values)?,)*
                    $($($more: $more_value,)+)?
                })
            }
        }

        const _: () = $crate::option::OptionRow::check_all(<$name as $crate::option::OptionTable>::ROWS);
    };
    (@shape $type:ty) => { <$type as $crate::option::OptionField>::SHAPE };
    (@shape $type:ty, $shape:ident) => { $crate::option::OptionShape::$shape };
    (@default) => { $crate::option::OptionDefault::Required };
    (@default $default:ident $(($value:expr))?) => { $crate::option::OptionDefault::$default $(($value))? };
    (@unit) => { "" };
    (@unit seconds $($range:tt)+) => { "seconds" };
    (@unit $unit:literal $($range:tt)*) => { $unit };
    (@range seconds $least:tt..=$most:tt) => { $crate::option::OptionRange::Seconds($least, $most) };
    (@range $unit:literal, $least:literal..=$most:tt) => { $crate::option::OptionRange::Whole($least, $most as i128) };
    (@range $($unit:literal)?) => { $crate::option::OptionRange::Any };
}
