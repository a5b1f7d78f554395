//! The keys, their values and their expiry, at one instant per script.

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;

use super::{error::CommandError, hash::Hash, sorted_set::SortedSet};

/// Most forgotten keys removed at the start of one script, so that none of them pays for a mass expiry.
const SWEEP: usize = 20;

/// A value.
pub enum Data {
    /// A string.
    Text(Bytes),
    /// A hash.
    Hash(Hash),
    /// A sorted set.
    SortedSet(SortedSet),
}

/// A type that commands ask for.
pub trait Kind: Default {
    /// The value as this type, if it is one.
    fn of(data: &Data) -> Option<&Self>;
    /// The same, to change it.
    fn of_mut(data: &mut Data) -> Option<&mut Self>;
    /// This type as a value.
    fn into_data(self) -> Data;
    /// Whether the key goes away with it; a Redis collection is never empty.
    fn is_empty(&self) -> bool;
}

macro_rules! kind {
    ($kind:ty, $variant:ident, $is_empty:expr) => {
        impl Kind for $kind {
            fn of(data: &Data) -> Option<&Self> {
                if let Data::$variant(value) = data { Some(value) } else { None }
            }
            fn of_mut(data: &mut Data) -> Option<&mut Self> {
                if let Data::$variant(value) = data { Some(value) } else { None }
            }
            fn into_data(self) -> Data {
                Data::$variant(self)
            }
            fn is_empty(&self) -> bool {
                $is_empty(self)
            }
        }
    };
}

kind!(Bytes, Text, |_| false);
kind!(Hash, Hash, Hash::is_empty);
kind!(SortedSet, SortedSet, SortedSet::is_empty);

struct Entry {
    data: Data,
    /// Unix milliseconds; the key is gone when the clock is past it.
    expires_at: Option<i64>,
}

/// All keys.
#[derive(Default)]
pub struct Keyspace {
    entries: HashMap<Bytes, Entry>,
    /// Every expiry there is, soonest first, to find the keys nobody asks for again.
    expiries: BTreeSet<(i64, Bytes)>,
    now_micros: u64,
    run_id: RunId,
}

/// Tells one life of the data from another: 40 random hex digits, as a Redis server gives itself when it starts.
struct RunId(String);

impl Default for RunId {
    fn default() -> Self {
        let bits: [u128; 2] = rand::random();
        Self(format!("{:032x}{:08x}", bits[0], bits[1] >> 96))
    }
}

impl Keyspace {
    /// Starts a script at `now_micros`: until the next one, time stands still.
    pub fn begin(&mut self, now_micros: u64) {
        self.now_micros = now_micros;
        for _ in 0..SWEEP {
            match self.expiries.first() {
                Some((at, _)) if *at < self.now_millis() => {}
                _ => break,
            }
            if let Some((_, key)) = self.expiries.pop_first() {
                self.entries.remove(&key);
            }
        }
    }

    /// Unix microseconds at the script's start.
    pub fn now_micros(&self) -> u64 {
        self.now_micros
    }

    /// Unix milliseconds at the script's start.
    pub fn now_millis(&self) -> i64 {
        i64::try_from(self.now_micros / 1_000).unwrap_or(i64::MAX)
    }

    /// The id of this life of the data.
    pub fn run_id(&self) -> &str {
        &self.run_id.0
    }

    /// The key's value, of whatever type.
    pub fn data(&mut self, key: &[u8]) -> Option<&Data> {
        self.drop_if_expired(key);
        self.entries.get(key).map(|entry| &entry.data)
    }

    /// The key's value, to read.
    pub fn read<T: Kind>(&mut self, key: &[u8]) -> Result<Option<&T>, CommandError> {
        self.data(key).map(|data| T::of(data).ok_or(CommandError::WrongType)).transpose()
    }

    /// Changes the key's value, if there is one.
    pub fn update<T: Kind, R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<Option<R>, CommandError> {
        self.drop_if_expired(key);
        let Some(entry) = self.entries.get_mut(key) else { return Ok(None) };
        let value = T::of_mut(&mut entry.data).ok_or(CommandError::WrongType)?;
        let result = change(value);
        if value.is_empty() {
            self.remove(key);
        }
        Ok(Some(result))
    }

    /// Changes the key's value, an empty one if there was none.
    pub fn upsert<T: Kind, R>(&mut self, key: &Bytes, change: impl FnOnce(&mut T) -> R) -> Result<R, CommandError> {
        self.drop_if_expired(key);
        let entry = self
            .entries
            .entry(key.clone())
            .or_insert_with(|| Entry { data: T::default().into_data(), expires_at: None });
        let value = T::of_mut(&mut entry.data).ok_or(CommandError::WrongType)?;
        let result = change(value);
        if value.is_empty() {
            self.remove(key);
        }
        Ok(result)
    }

    /// Replaces the key's value by a string, whatever it was; its expiry stays.
    pub fn put(&mut self, key: &Bytes, text: Bytes) {
        self.drop_if_expired(key);
        let data = Data::Text(text);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.data = data;
        } else {
            self.entries.insert(key.clone(), Entry { data, expires_at: None });
        }
    }

    /// Removes the key; whether it was there.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        self.drop_if_expired(key);
        self.forget(key)
    }

    /// When the key expires, in Unix milliseconds.
    pub fn expiry(&mut self, key: &[u8]) -> Option<i64> {
        self.drop_if_expired(key);
        self.entries.get(key)?.expires_at
    }

    /// Sets or lifts the expiry of a key that exists. One that is due removes the key.
    pub fn set_expiry(&mut self, key: &Bytes, at: Option<i64>) {
        if at.is_some_and(|at| at <= self.now_millis()) {
            self.forget(key);
            return;
        }
        let Some(entry) = self.entries.get_mut(key) else { return };
        if let Some(old) = std::mem::replace(&mut entry.expires_at, at) {
            self.expiries.remove(&(old, key.clone()));
        }
        if let Some(new) = at {
            self.expiries.insert((new, key.clone()));
        }
    }

    fn drop_if_expired(&mut self, key: &[u8]) {
        let now = self.now_millis();
        if self.entries.get(key).and_then(|entry| entry.expires_at).is_some_and(|at| at < now) {
            self.forget(key);
        }
    }

    fn forget(&mut self, key: &[u8]) -> bool {
        let Some((key, entry)) = self.entries.remove_entry(key) else { return false };
        if let Some(at) = entry.expires_at {
            self.expiries.remove(&(at, key));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgotten_keys_do_not_pile_up_and_no_script_pays_for_all_of_them() {
        let mut keyspace = Keyspace::default();
        keyspace.begin(0);
        for number in 0..100 {
            let key = Bytes::from(format!("key {number}"));
            keyspace.put(&key, Bytes::new());
            keyspace.set_expiry(&key, Some(10));
        }
        keyspace.upsert(&Bytes::from("kept"), |hash: &mut Hash| hash.insert("a".into(), "b".into())).unwrap();
        // Redis lets a key live through the millisecond of its deadline.
        keyspace.begin(10_999);
        assert_eq!(keyspace.entries.len(), 101);
        keyspace.begin(11_000);
        assert_eq!(keyspace.entries.len(), 101 - SWEEP);
        assert!(keyspace.data(b"key 99").is_none());
        for _ in 0..5 {
            keyspace.begin(11_000);
        }
        assert_eq!((keyspace.entries.len(), keyspace.expiries.len()), (1, 0));
    }

    #[test]
    fn a_changed_or_lifted_expiry_leaves_no_trace_of_the_old_one() {
        let mut keyspace = Keyspace::default();
        keyspace.begin(0);
        let key = Bytes::from("key");
        keyspace.put(&key, Bytes::new());
        for expiry in [Some(10), Some(20), None, Some(30)] {
            keyspace.set_expiry(&key, expiry);
            assert_eq!(keyspace.expiry(&key), expiry);
            assert_eq!(keyspace.expiries.len(), usize::from(expiry.is_some()));
        }
        assert!(keyspace.remove(&key));
        assert_eq!(keyspace.expiries.len(), 0);
    }
}
