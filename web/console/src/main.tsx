// Entry point of the console.

import { type JSX, render } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import type { Api } from "./api.js";
import { Access } from "./pages/access.js";
import { Audit } from "./pages/audit.js";
import { Line } from "./pages/line.js";
import { Lines } from "./pages/lines.js";
import { SignIn } from "./pages/signin.js";
import { WhatIf } from "./pages/what-if.js";
import { forget, remember, restore } from "./session.js";
import { type Key, language, t } from "./i18n.js";
import type { PageProps } from "./pages/page.js";

/** The pages besides the lines, by their hash route. */
const PAGES: Record<string, [Key, (props: PageProps) => JSX.Element]> = {
  "#/what-if": ["whatIf", WhatIf],
  "#/access": ["access", Access],
  "#/audit": ["audit", Audit],
};

function App() {
  const [api, setApi] = useState<Api | null>(restore);
  const [denied, setDenied] = useState(false);
  if (!api) {
    const signedIn = (api: Api) => {
      remember(api);
      setDenied(false);
      setApi(api);
    };
    return <SignIn signedIn={signedIn} denied={denied} />;
  }
  const signOut = (isDenied: boolean) => {
    forget();
    setDenied(isDenied);
    setApi(null);
  };
  return <SignedIn api={api} signOut={signOut} />;
}

function SignedIn({ api, signOut }: { api: Api; signOut: (denied: boolean) => void }) {
  const route = useRoute();
  const watch = { api, denied: () => signOut(true) };
  const line = /^#\/line\/(.+)$/.exec(route)?.[1];
  const Page = PAGES[route]?.[1] ?? Lines;
  const here = (is: boolean) => (is ? ({ "aria-current": "page" } as const) : {});
  return (
    <>
      <header class="top">
        <a class="brand" href="#/">
          daegi <span>{t("console")}</span>
        </a>
        <nav>
          <a href="#/" {...here(!line && !(route in PAGES))}>
            {t("lines")}
          </a>
          {Object.entries(PAGES).map(([path, [label]]) => (
            <a key={path} href={path} {...here(route === path)}>
              {t(label)}
            </a>
          ))}
        </nav>
        {api.operator && <span class="operator">{api.operator}</span>}
        <button type="button" onClick={() => signOut(false)}>
          {t("signOut")}
        </button>
      </header>
      {line ? <Line key={line} watch={watch} id={decodeURIComponent(line)} /> : <Page watch={watch} />}
    </>
  );
}

/** Returns the hash route of the URL. */
function useRoute(): string {
  const [route, setRoute] = useState(location.hash);
  // A layout effect, because an effect after the next frame would miss an earlier navigation.
  useLayoutEffect(() => {
    const changed = () => {
      setRoute(location.hash);
      window.scrollTo(0, 0);
    };
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return route;
}

document.documentElement.lang = language;
document.title = `daegi · ${t("console")}`;
const app = document.createElement("div");
app.id = "app";
document.body.append(app);
render(<App />, app);
