package lang

// Emails.
var frenchMail = map[Message]string{
	"Hello,": "Bonjour,",

	"Your sign-in code for %s":               "Votre code de connexion à %s",
	"Confirm your new email address for %s":  "Confirmez votre nouvelle adresse e-mail pour %s",
	"Your %s email address was changed":      "Votre adresse e-mail pour %s a été modifiée",
	"Your %s account was deleted":            "Votre compte %s a été supprimé",
	"Your payment for %s Pro failed":         "Le paiement de %s Pro a échoué",
	"Your %s Pro plan has ended":             "Votre formule %s Pro a pris fin",
	"Your saved query %s is no longer valid": "Votre requête enregistrée %s n’est plus valide",
	"A %s webhook endpoint was disabled":     "Un endpoint de webhook %s a été désactivé",

	"Your %s account was deleted and its API keys were revoked. You will not receive any more emails about it.": "Votre compte %s a été supprimé et ses clés d’API ont été révoquées. Vous ne recevrez plus d’e-mails à son sujet.",
	"If you did not delete it, reply to this email right away.":                                                 "Si vous n’en êtes pas à l’origine, répondez à cet e-mail sans attendre.",

	"Confirm email address": "Confirmer l’adresse e-mail",
	"To confirm this email address for your %s account, enter this code:": "Pour confirmer cette adresse e-mail pour votre compte %s, saisissez ce code :",
	"Or open this link:": "Ou ouvrez ce lien :",
	"The code and the link can be used once and expire after 15 minutes. Do not share them with anyone.":         "Le code et le lien ne servent qu’une fois et expirent au bout de 15 minutes. Ne les communiquez à personne.",
	"If you did not request this, you can ignore this email. The email address of your account will not change.": "Si vous n’avez rien demandé, ignorez cet e-mail : l’adresse e-mail de votre compte ne changera pas.",

	"The email address of your %s account was changed to %s. From now on, we send emails there, and you can no longer sign in with this address.": "L’adresse e-mail de votre compte %s est désormais %s. Nous y enverrons nos e-mails, et vous ne pouvez plus vous connecter avec l’ancienne adresse.",
	"If you did not change it, reply to this email right away.":                                                                                   "Si vous n’en êtes pas à l’origine, répondez à cet e-mail sans attendre.",

	"Open": "Ouvrir",
	"If the button does not work, open this link:": "Si le bouton ne fonctionne pas, ouvrez ce lien :",

	"Update payment details": "Mettre à jour le moyen de paiement",
	"The payment for your %s Pro plan failed. You can keep using Pro until %s. Please update your card or pay the open invoice by then.": "Le paiement de votre formule %s Pro a échoué. Vous pouvez continuer à utiliser Pro jusqu’au %s. D’ici là, mettez à jour votre carte ou réglez la facture en attente.",
	"Otherwise, your account returns to the Developer plan.":                                                                             "Sinon, votre compte repassera à la formule Developer.",

	"View plans": "Voir les formules",
	"Your %s Pro plan has ended, and your account is now on the Developer plan.":                 "Votre formule %s Pro a pris fin : votre compte est passé à la formule Developer.",
	"Your 3 oldest API keys still work. All other keys are suspended until you subscribe again.": "Vos 3 clés d’API les plus anciennes fonctionnent toujours. Les autres sont suspendues jusqu’à ce que vous vous abonniez de nouveau.",

	"Open your account": "Accéder à votre compte",
	"Your saved query %s on %s is no longer valid, because the API has changed. Reason: %s": "Votre requête enregistrée %s sur %s n’est plus valide, car l’API a changé. Motif : %s",
	"Its URL returns status 410 until you save a corrected query under the same name.":      "Son URL renvoie le statut 410 jusqu’à ce que vous enregistriez une requête corrigée sous le même nom.",

	"Sign in":                      "Se connecter",
	"Your sign-in code for %s is:": "Votre code de connexion à %s :",
	"If you did not try to sign in, you can ignore this email. Nobody can sign in without the code or the link.": "Si vous n’avez pas cherché à vous connecter, ignorez cet e-mail : personne ne peut se connecter sans le code ou le lien.",

	"View delivery attempts": "Voir les tentatives d’envoi",
	"We no longer send %s events to your webhook endpoint %s. Reason: %s.":                                           "Nous n’envoyons plus d’événements %s à votre endpoint %s. Motif : %s.",
	"Once the receiver works again, enable the endpoint on its page. You can also resend the events that it missed.": "Dès que votre serveur fonctionnera de nouveau, réactivez l’endpoint sur sa page. Vous pouvez aussi renvoyer les événements manqués.",
}
