//! A Redis hash that lists its fields in the order of their first insertion, as a small Redis hash does.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

/// Fields with values.
#[derive(Default)]
pub struct Hash {
    places: HashMap<Bytes, u64>,
    fields: BTreeMap<u64, (Bytes, Bytes)>,
    next_place: u64,
}

impl Hash {
    /// How many fields.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// A field's value.
    pub fn get(&self, field: &[u8]) -> Option<&Bytes> {
        self.fields.get(self.places.get(field)?).map(|(_, value)| value)
    }

    /// Sets a field; whether it is new.
    pub fn insert(&mut self, field: Bytes, value: Bytes) -> bool {
        if let Some(place) = self.places.get(&field) {
            self.fields.insert(*place, (field, value));
            return false;
        }
        self.places.insert(field.clone(), self.next_place);
        self.fields.insert(self.next_place, (field, value));
        self.next_place += 1;
        true
    }

    /// Removes a field; whether it was there.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        self.places.remove(field).is_some_and(|place| self.fields.remove(&place).is_some())
    }

    /// All fields and values.
    pub fn iter(&self) -> impl Iterator<Item = &(Bytes, Bytes)> {
        self.fields.values()
    }

    /// Fields and values from a place on, at most `most`, and the place after them: 0 at the end.
    pub fn page(&self, from: u64, most: usize) -> (u64, Vec<(Bytes, Bytes)>) {
        let mut rest = self.fields.range(from..);
        let page = rest.by_ref().take(most).map(|(_, pair)| pair.clone()).collect();
        (rest.next().map_or(0, |(place, _)| *place), page)
    }
}
