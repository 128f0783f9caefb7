//! The registry of scripts. Each file's head says what it takes, answers and changes.

use std::sync::OnceLock;

use ::redis::{Cmd, ToRedisArgs, cmd};

/// One script and the name by which a server that knows it can be told to run it.
pub(crate) struct Script {
    code: &'static str,
    hash: String,
}

/// A call of a script in the making.
pub(crate) struct ScriptInvocation<'a> {
    script: &'a Script,
    keys: Vec<Vec<u8>>,
    args: Vec<Vec<u8>>,
}

macro_rules! registry {
    (line: [$($line:ident),* $(,)?], plain: [$($plain:ident),* $(,)?]) => {
        /// Every script there is.
        pub(crate) struct Scripts {
            $(pub(super) $line: Script,)*
            $(pub(super) $plain: Script,)*
        }

        impl Scripts {
            fn new() -> Self {
                Self {
                    $($line: Script::new(concat!(
                        include_str!("scripts/numbers.lua"),
                        include_str!("scripts/line.lua"),
                        include_str!(concat!("scripts/", stringify!($line), ".lua")),
                    )),)*
                    $($plain: Script::new(concat!(
                        include_str!("scripts/numbers.lua"),
                        include_str!(concat!("scripts/", stringify!($plain), ".lua")),
                    )),)*
                }
            }

            pub(super) fn all(&self) -> impl Iterator<Item = &Script> {
                [$(&self.$line,)* $(&self.$plain,)*].into_iter()
            }
        }
    };
}

registry! {
    line: [
        remove_item, set_policy, set_paused, reset, purge, join, snapshot, mark_seen,
        resolve, reenter, close, counts, admit, expire, sweep, note_ended,
    ],
    plain: [
        open, open_partition, declare_loss, set_settings, copy_settings, publish_waiting, next_epoch, fence,
        acquire_lock, renew, announce, outbox_ack, put_items, catalogue, begin_catalogue, end_catalogue,
        journal_write, post_notice,
    ]
}

/// The scripts, hashed once per process.
pub(crate) fn scripts() -> &'static Scripts {
    static SCRIPTS: OnceLock<Scripts> = OnceLock::new();
    SCRIPTS.get_or_init(Scripts::new)
}

impl Script {
    fn new(code: &'static str) -> Self {
        Self { code, hash: ::redis::Script::new(code).get_hash().to_owned() }
    }

    pub(super) fn prepare_invoke(&self) -> ScriptInvocation<'_> {
        ScriptInvocation { script: self, keys: Vec::new(), args: Vec::new() }
    }

    /// Teaches a server the script, so that the first person does not wait for it.
    pub(super) fn load(&self) -> Cmd {
        let mut load = cmd("SCRIPT");
        load.arg("LOAD").arg(self.code);
        load
    }
}

impl ScriptInvocation<'_> {
    pub(super) fn key<T: ToRedisArgs>(&mut self, key: T) -> &mut Self {
        key.write_redis_args(&mut self.keys);
        self
    }

    pub(super) fn arg<T: ToRedisArgs>(&mut self, arg: T) -> &mut Self {
        arg.write_redis_args(&mut self.args);
        self
    }

    /// All keys share a slot, so the first one tells where they are.
    pub(super) fn first_key(&self) -> Option<&[u8]> {
        self.keys.first().map(Vec::as_slice)
    }

    /// The call for a server that knows the script.
    pub(super) fn by_hash(&self) -> Cmd {
        self.command("EVALSHA", &self.script.hash)
    }

    /// The call for a server that has forgotten it, or never knew: it came back, or was a replica.
    /// It knows it from then on. Loading first would be a second way to fail, and on a cluster the
    /// script is needed on this node only.
    pub(super) fn by_text(&self) -> Cmd {
        self.command("EVAL", self.script.code)
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        let words = self.keys.iter().chain(&self.args);
        let length = words.map(Vec::len).sum::<usize>() + script.len() + 16;
        let mut command = Cmd::with_capacity(3 + self.keys.len() + self.args.len(), length);
        command.arg(name).arg(script).arg(self.keys.len()).arg(&*self.keys).arg(&*self.args);
        command
    }
}
