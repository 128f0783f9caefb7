import { useState } from "preact/hooks";
import { Api, Refusal } from "../api.js";
import { lastOperator } from "../session.js";
import { t } from "../i18n.js";

export function SignIn({ signedIn, denied }: { signedIn: (api: Api) => void; denied: boolean }) {
  const [problem, setProblem] = useState(denied ? t("wrongToken") : "");
  const submit = async (form: HTMLFormElement) => {
    const given = new FormData(form);
    const api = new Api(String(given.get("token")).trim(), String(given.get("operator")).trim());
    try {
      await api.get("/overview?limit=0");
      signedIn(api);
    } catch (error) {
      setProblem(error instanceof Refusal && error.status === 401 ? t("wrongToken") : t("lost"));
    }
  };
  return (
    <main class="signin">
      <h1>
        daegi <span>{t("console")}</span>
      </h1>
      <p>{t("signInText")}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
        }}
      >
        <label for="token">{t("token")}</label>
        <input id="token" name="token" type="password" required autocomplete="current-password" aria-describedby="problem" />
        <p id="problem" role="alert" class="grave">
          {problem}
        </p>
        <label for="operator">{t("operator")}</label>
        <input id="operator" name="operator" maxLength={64} autocomplete="name" value={lastOperator()} aria-describedby="operator-hint" />
        <small id="operator-hint">{t("operatorHint")}</small>
        <button type="submit" class="ready">
          {t("signIn")}
        </button>
      </form>
    </main>
  );
}
