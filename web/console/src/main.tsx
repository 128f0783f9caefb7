// Entry point of the console.

import { type JSX, render } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import type { Api } from "./api.js";
import { Access } from "./pages/access.js";
import { Caller, useMe } from "./caller.js";
import { Audit } from "./pages/audit.js";
import { Line } from "./pages/line.js";
import { Lines } from "./pages/lines.js";
import { Operators } from "./pages/operators.js";
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

/** The pages of admins. */
const ADMIN_PAGES: typeof PAGES = { "#/operators": ["operators", Operators] };

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
  const me = useMe(api);
  const here = (is: boolean) => (is ? ({ "aria-current": "page" } as const) : {});
  if (!me) return null;
  const pages = me.role === "admin" ? { ...PAGES, ...ADMIN_PAGES } : PAGES;
  const Page = pages[route]?.[1] ?? Lines;
  const name = me.name ?? api.operator;
  return (
    <Caller.Provider value={me}>
      <header class="top">
        <a class="brand" href="#/">
          daegi <span>{t("console")}</span>
        </a>
        <nav>
          <a href="#/" {...here(!line && !(route in pages))}>
            {t("lines")}
          </a>
          {Object.entries(pages).map(([path, [label]]) => (
            <a key={path} href={path} {...here(route === path)}>
              {t(label)}
            </a>
          ))}
        </nav>
        {name && (
          <span class="operator">
            {name}
            {me.name && ` · ${t(`role ${me.role}`)}`}
          </span>
        )}
        <button type="button" onClick={() => signOut(false)}>
          {t("signOut")}
        </button>
      </header>
      {line ? <Line key={line} watch={watch} id={decodeURIComponent(line)} /> : <Page watch={watch} />}
    </Caller.Provider>
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
