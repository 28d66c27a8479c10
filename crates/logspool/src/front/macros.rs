//! The macro of logging calls, on which those of the levels are built.

/// Logs at a level that is known when the program is compiled. `level.rs` declares a macro for each level, such as
/// `info!`.
///
/// The text and its arguments follow the rules of `format!`. `target: "name",` before the text names the logger, which
/// is otherwise the path of the module. Keys with values come before the text and end with `;`: `key = value`, `key` for
/// a variable, `key:? = value` or `key:?` for its `Debug` text, and `:%` for its `Display` text. A key may be a text.
///
/// ```
/// # let (user, milliseconds) = ("ada", 0.25);
/// logspool::info!("user {} waited {:.3} ms", user, milliseconds);
/// logspool::info!(target: "shop", user, waited = milliseconds, "in-cart":? = Some(3); "done");
/// logspool::record!(logspool::front::Level::Info, "a value of another type: {}", logspool::front::debug(Some(1)));
/// ```
///
/// A text with an error does not compile:
///
/// ```compile_fail
/// logspool::info!("{} and {}", 1);
/// ```
#[macro_export]
macro_rules! record {
    ($level:expr, target: $target:literal, $($call:tt)+) => {
        $crate::__call!($level, (fixed $target), [] $($call)+)
    };
    ($level:expr, target: $target:expr, $($call:tt)+) => { $crate::__call!($level, (found $target), [] $($call)+) };
    ($level:expr, $($call:tt)+) => { $crate::__call!($level, (fixed ::std::module_path!()), [] $($call)+) };
}

/// Takes the keys of a call apart, then its text. The forms of keys are those of the crate `log`.
#[doc(hidden)]
#[macro_export]
macro_rules! __call {
    // The keys with a value, which `,` or `;` ends. Each becomes `(name, value)`. `:?` and `:%` name the text of a value.
    ($level:expr, $target:tt, [$($keys:tt)*] $key:tt $(: $as:tt)? = $value:expr, $($call:tt)+) => {
        $crate::__call!($level, $target, [$($keys)* ($crate::__key!($key), $crate::__shown!($value $(, $as)?))] $($call)+)
    };
    ($level:expr, $target:tt, [$($keys:tt)*] $key:tt $(: $as:tt)? = $value:expr; $($call:tt)+) => {
        $crate::__call!($level, $target, [$($keys)* ($crate::__key!($key), $crate::__shown!($value $(, $as)?))] $($call)+)
    };
    // The names of variables, as `user` and `user:?`.
    ($level:expr, $target:tt, $keys:tt $key:ident $(: $as:tt)?, $($call:tt)+) => {
        $crate::__call!($level, $target, $keys $key $(: $as)? = $key, $($call)+)
    };
    ($level:expr, $target:tt, $keys:tt $key:ident $(: $as:tt)?; $($call:tt)+) => {
        $crate::__call!($level, $target, $keys $key $(: $as)? = $key; $($call)+)
    };
    ($level:expr, $target:tt, $keys:tt $text:expr $(, $($arguments:tt)*)?) => {
        $crate::__send!($level, $target, $keys, $text, ($($($arguments)*)?))
    };
}

/// The value of a key, or its text.
#[doc(hidden)]
#[macro_export]
macro_rules! __shown {
    ($value:expr) => {
        $value
    };
    ($value:expr, ?) => {
        $crate::front::debug(&$value)
    };
    ($value:expr, %) => {
        $crate::front::display(&$value)
    };
}

/// The name of a key: an identifier, or a text.
#[doc(hidden)]
#[macro_export]
macro_rules! __key {
    ($key:ident) => {
        ::std::stringify!($key)
    };
    ($key:expr) => {
        $key
    };
}

// Names of items can be seen by the arguments, so they are names that no program has.
#[doc(hidden)]
#[macro_export]
macro_rules! __send {
    ($level:expr, $target:tt, [$(($key:expr, $value:expr))*], $text:expr, ($($arguments:tt)*)) => {{
        static __LOGSPOOL_SITE: $crate::front::CallSite = $crate::front::CallSite::new(
            $level,
            $crate::__fixed_target!($target),
            (::std::file!(), ::std::line!(), ""),
            $text,
        );
        const __LOGSPOOL_NAMES: &[&str] = $crate::__names!([] $($arguments)*);
        const __LOGSPOOL_HAS_TYPES: bool = $crate::front::template::has_types($text);
        const __LOGSPOOL_IS_TEXT_OF_CALLER: bool = $crate::front::template::has_names(__LOGSPOOL_NAMES)
            || $crate::front::template::has_addresses($text)
            || $crate::front::template::has_captures($text, __LOGSPOOL_NAMES);
        if let ::std::option::Option::Some(call) = $crate::__begin!(__LOGSPOOL_SITE, $target) {
            let fields = &$crate::__pairs!($(($crate::front::Keyed($key, &$value)))*);
            if __LOGSPOOL_IS_TEXT_OF_CALLER {
                call.send_text(fields, ::std::format_args!($text, $($arguments)*));
            } else {
                $crate::__deferred!(call, fields, $text, [] $($arguments)*);
            }
        }
    }};
}

/// The target of a call site, or "" if each call brings its own.
#[doc(hidden)]
#[macro_export]
macro_rules! __fixed_target {
    ((fixed $target:expr)) => {
        $target
    };
    ((found $target:expr)) => {
        ""
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __begin {
    ($site:ident, (fixed $target:expr)) => {
        $site.begin()
    };
    ($site:ident, (found $target:expr)) => {
        $site.begin_for(&$target)
    };
}

/// The names of the arguments; "" for an argument without a name.
#[doc(hidden)]
#[macro_export]
macro_rules! __names {
    ([$($names:expr,)*]) => { &[$($names),*] };
    ([$($names:expr,)*] $name:ident = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__names!([$($names,)* ::std::stringify!($name),] $($($rest)*)?)
    };
    ([$($names:expr,)*] $value:expr $(, $($rest:tt)*)?) => {
        $crate::__names!([$($names,)* "",] $($($rest)*)?)
    };
}

/// Nested pairs of values.
#[doc(hidden)]
#[macro_export]
macro_rules! __pairs {
    () => { () };
    ($value:tt $($rest:tt)*) => { ($value, $crate::__pairs!($($rest)*)) };
}

/// Queues the arguments, after the compiler has checked them against the text. Each is evaluated once: `value` is another
/// variable in each step.
#[doc(hidden)]
#[macro_export]
macro_rules! __deferred {
    ($call:ident, $fields:ident, $text:expr, [$($values:ident)*]) => {{
        // The closure is never called. It lets the compiler check text and arguments.
        let _ = || ::std::format!($text, $(*$values),*);
        let values = &$crate::__pairs!($($values)*);
        if __LOGSPOOL_HAS_TYPES && $crate::front::Arguments::need_caller(values) {
            $call.send_text($fields, ::std::format_args!($text, $(*$values),*));
        } else {
            $call.send($fields, values);
        }
    }};
    // A call with named arguments makes its text, so this code does not run for it.
    ($call:ident, $fields:ident, $text:expr, [$($values:ident)*] $name:ident = $value:expr $(, $($rest:tt)*)?) => {{
        let _ = $call;
    }};
    ($call:ident, $fields:ident, $text:expr, [$($values:ident)*] $value:expr $(, $($rest:tt)*)?) => {
        match &$value {
            value => $crate::__deferred!($call, $fields, $text, [$($values)* value] $($($rest)*)?),
        }
    };
}
