use daegi_domain::{Branding, Colour};

/// How far the accent colour is moved towards white in dark mode.
const LIGHTER: f64 = 0.35;

/// Returns the style sheet of an item: its colours and then its own rules.
pub(crate) fn style_of(look: &Branding) -> String {
    let mut style = look.accent.map(colours).unwrap_or_default();
    style.push_str(look.css.as_deref().unwrap_or_default());
    style
}

/// Returns the style sheet that sets the accent colour of an item. Text on it is black or white,
/// whichever has more contrast.
fn colours(accent: Colour) -> String {
    let light = rule(accent);
    let dark = rule(accent.towards_white(LIGHTER));
    format!(":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}")
}

fn rule(accent: Colour) -> String {
    let on = if accent.is_light() { "#111111" } else { "#ffffff" };
    format!("--accent:{accent};--on-accent:{on}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_on_the_accent_colour_has_contrast() {
        let style = colours(Colour::parse("#0a3d91").unwrap());
        assert!(style.starts_with(":root{--accent:#0a3d91;--on-accent:#ffffff}"), "{style}");
        let style = colours(Colour::parse("#ffd400").unwrap());
        assert!(style.contains("--accent:#ffd400;--on-accent:#111111"), "{style}");
    }
}
