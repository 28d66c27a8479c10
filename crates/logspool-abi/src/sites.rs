//! Call sites: where a record comes from, and its template.

use std::ffi::c_char;
use std::sync::atomic::Ordering;

use logspool::pipeline;
use logspool_record::definition::{Grammar, SiteDefinition};
use logspool_record::format::{ArgumentType, TypedArgument, check, check_grammar};
use logspool_record::tag;

use crate::handles::{HandleTable, PublicHandle};
use crate::status::{Failure, Status, text};

/// `struct logspool_site_info`.
#[derive(Debug)]
#[repr(C)]
pub struct SiteInfo {
    /// Bytes of this struct.
    pub size: u32,
    /// Line of the call.
    pub line: u32,
    /// Source file.
    pub file: *const c_char,
    /// Function.
    pub function: *const c_char,
    /// Template; null if each record carries its text.
    pub message: *const c_char,
    /// Level of the records.
    pub level: u16,
    /// Number of the template's grammar.
    pub grammar: u8,
    /// 0 or [`ALWAYS`].
    pub flags: u8,
    /// Number of types.
    pub type_count: u32,
    /// Types of the arguments, or null.
    pub types: *const u8,
}

/// Flag of a site whose records are logged whatever the level of their logger: they were kept back until they were
/// wanted. The site's `needs` word has it.
pub const ALWAYS: u8 = 1;

/// A call site.
pub struct SiteHandle {
    /// The definition in each pipeline.
    pub definition: SiteDefinition,
    /// The part that headers read. The id 0: the site table of the pipeline is full.
    pub public: &'static PublicHandle,
}

/// All sites of the process.
pub static SITES: HandleTable<SiteHandle> = HandleTable::new();

/// Arguments of a template. Chosen: a call with more is a mistake of the caller's count.
const MAX_TYPES: u32 = 1024;

/// Defines a site.
///
/// # Errors
///
/// The template does not fit its grammar or its types.
///
/// # Safety
///
/// `site` is null or a struct as `logspool.h` describes.
pub unsafe fn define(site: *const SiteInfo) -> Result<u32, Failure> {
    // SAFETY: null or a struct that begins with its size, as `# Safety` says.
    let definition = unsafe { definition(site)? };
    // SAFETY: `definition` has checked the struct.
    let site = unsafe { &*site };
    let handle = SiteHandle { definition, public: Box::leak(Box::new(PublicHandle::new(site.level))) };
    handle.public.needs.store(u32::from(site.flags & ALWAYS), Ordering::Relaxed);
    handle.id();
    SITES.add(|_| handle).ok_or_else(|| Failure::new(Status::Failed, "there are too many sites"))
}

/// Reads a site.
///
/// # Errors
///
/// As [`define`].
///
/// # Safety
///
/// As [`define`].
pub unsafe fn definition(site: *const SiteInfo) -> Result<SiteDefinition, Failure> {
    if site.is_null() {
        return Err(Failure::invalid("a site is NULL"));
    }
    // SAFETY: the pointer is not null; the size is the first field of every version of the struct.
    let size = unsafe { (*site).size } as usize;
    if size < size_of::<SiteInfo>() {
        return Err(Failure::invalid(format!(
            "a site has the size {size}: set it to sizeof(struct logspool_site_info)"
        )));
    }
    // SAFETY: the pointer is not null, and the struct has all fields, as its size says.
    let site = unsafe { &*site };
    let grammar = Grammar::from_number(site.grammar)
        .ok_or_else(|| Failure::invalid(format!("there is no grammar {}", site.grammar)))?;
    if site.level == 0 {
        return Err(Failure::invalid("the level of a site must be 1 to 65535, not 0"));
    }
    if site.type_count > MAX_TYPES {
        return Err(Failure::invalid(format!("a site has at most {MAX_TYPES} arguments, not {}", site.type_count)));
    }
    // SAFETY: each pointer is null or a C string, as `logspool.h` demands.
    let [file, function, template] = [site.file, site.function, site.message].map(|each| unsafe { text(each) });
    if let Some(template) = &template {
        let checked = if site.types.is_null() {
            check_grammar(grammar, template)
        } else {
            // SAFETY: not null, and `logspool.h` demands `type_count` types at it, of which there are few.
            let types = unsafe { std::slice::from_raw_parts(site.types, site.type_count as usize) };
            let types = types.iter().map(|each| argument_type(*each)).collect::<Result<Vec<_>, _>>()?;
            check(grammar, template, &types)
        };
        checked.map_err(|error| Failure::invalid(format!("bad template {template:?}: {error}")))?;
    }
    Ok(SiteDefinition {
        file: file.unwrap_or_default(),
        line: site.line,
        function: function.unwrap_or_default(),
        template,
        grammar,
    })
}

/// Adds the site of another copy, whose public part stays where it is.
///
/// # Errors
///
/// There are too many sites.
pub fn restore(definition: SiteDefinition, public: &'static PublicHandle) -> Result<u32, Failure> {
    SITES
        .add(|_| SiteHandle { definition, public })
        .ok_or_else(|| Failure::new(Status::Failed, "there are too many sites"))
}

fn argument_type(number: u8) -> Result<TypedArgument<'static>, Failure> {
    let kind = match number {
        tag::NONE => ArgumentType::None,
        tag::TRUE | tag::FALSE => ArgumentType::Bool,
        tag::INT | tag::BIG_INT => ArgumentType::Int,
        tag::UINT => ArgumentType::Uint,
        tag::FLOAT => ArgumentType::Float,
        tag::FLOAT32 => ArgumentType::Float32,
        tag::CHAR => ArgumentType::Char,
        tag::STR => ArgumentType::Text,
        tag::BYTES => ArgumentType::Bytes,
        tag::POINTER => ArgumentType::Pointer,
        tag::RENDERED => ArgumentType::Rendered,
        _ => return Err(Failure::invalid(format!("there is no argument type {number}"))),
    };
    Ok(TypedArgument::unnamed(kind))
}

impl SiteHandle {
    /// Whether records of this site are logged whatever the level of their logger.
    pub fn is_always_logged(&self) -> bool {
        self.public.needs.load(Ordering::Relaxed) & u32::from(ALWAYS) != 0
    }

    /// The id in the current pipeline; 0 if its table is full.
    #[inline]
    pub fn id(&self) -> u32 {
        match self.public.id_under(pipeline::id_epoch()) {
            Some(id) => id,
            None => self.define_again(),
        }
    }

    #[cold]
    fn define_again(&self) -> u32 {
        let id = pipeline::define_site(&self.definition).unwrap_or(0);
        self.public.set(pipeline::id_epoch(), id);
        id
    }
}
