//! Text that is the same for every record of one call site, level and logger, rendered once.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). The cache is small, with one place for each hash. After a collision
//! the text is rendered again.

use super::view::ParsedRecord;

/// Number of places in a cache.
///
/// Chosen: most records of a program come from a few dozen call sites. Doubling it takes 10 KB more memory for each
/// format.
const PLACES: usize = 64;

/// The cached texts of one format, by site, level and logger.
#[derive(Debug, Clone, Default)]
pub(super) struct ConstantTextCache {
    places: Vec<ConstantTexts>,
}

/// The texts for one site, level and logger.
#[derive(Debug, Clone, Default)]
pub(super) struct ConstantTexts {
    /// `None`: the place is empty, or its texts belong to a site that no other record has.
    site: Option<u64>,
    level: u16,
    logger: String,
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl ConstantTextCache {
    /// The texts for `record`; `make` renders them if they are not in the cache.
    #[inline]
    pub(super) fn of(&mut self, record: &ParsedRecord<'_>, make: impl FnOnce(&mut ConstantTexts)) -> &ConstantTexts {
        if self.places.is_empty() {
            self.places.resize_with(PLACES, ConstantTexts::default);
        }
        let site = record.site_serial();
        let place = site.unwrap_or(0).wrapping_add(31 * u64::from(record.level)) as usize % PLACES;
        let constant = &mut self.places[place];
        let same = site.is_some()
            && constant.site == site
            && constant.level == record.level
            && constant.logger.as_str() == record.logger;
        if !same {
            constant.text.clear();
            constant.ends.clear();
            make(constant);
            constant.site = site;
            constant.level = record.level;
            constant.logger.clear();
            constant.logger.push_str(record.logger);
        }
        constant
    }
}

impl ConstantTexts {
    /// Adds one text, written by `make`.
    pub(super) fn add(&mut self, make: impl FnOnce(&mut Vec<u8>)) {
        make(&mut self.text);
        self.ends.push(self.text.len());
    }

    /// The text with number `index`, in the order of the calls of `add`.
    #[inline]
    pub(super) fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }
}
